"""Saved graphs: the checks and errors of the context's ``save_graph()``, ``load_graph()`` and the like."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webnn_py.descriptors import converted, string
from webnn_py.errors import NotFoundError, OperationError, QuotaExceededError
from webnn_py.message_text import device_text, shown
from webnn_py.saved_graphs.record import UnusableFileError
from webnn_py.script.argument_checks import unknown

if TYPE_CHECKING:
    from webnn_py.saved_graphs.folder import GraphFolder

LONGEST_KEY: Final = 4096


def saving_error(method: str, error: Exception) -> Exception:
    """Return the error for the promise of a method whose step on the device timeline has failed."""
    from webnn_py.saved_graphs.folder import TooLargeError  # noqa: PLC0415 - imported when it is used

    if isinstance(error, TooLargeError):
        refusal: Exception = QuotaExceededError(f"{method}(): the graph cannot be kept: {error}")
    elif method == "load_graph" and isinstance(error, UnusableFileError):
        refusal = NotFoundError(f"{method}(): no graph can be loaded under this key: {error}")
    elif method == "load_graph" and not isinstance(error, OSError):
        refusal = OperationError(f"{method}(): the device refuses the graph: {device_text(error)}")
    else:
        return unknown(method, error)
    refusal.__cause__ = error
    return refusal


def checked_folder(call: str, graph_cache: object, graph_cache_bytes: object) -> GraphFolder | None:
    """Convert the options ``graph_cache`` and ``graph_cache_bytes`` of a call, for messages, to a folder of graphs.

    Raises:
        TypeError: one is not what it must be.
    """
    most_bytes = converted(f"{call}: graph_cache_bytes", _byte_count, graph_cache_bytes)
    if graph_cache is None:
        return None
    from webnn_py.saved_graphs.folder import GraphFolder  # noqa: PLC0415 - imported when it is used

    return GraphFolder(converted(f"{call}: graph_cache", _absolute_path, graph_cache), most_bytes)


def _absolute_path(value: object) -> Path:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"is {shown(value)}; it must be the path of a folder, or None")
    return Path(value).absolute()


def _byte_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"is {shown(value)}; it must be a number of bytes, an integer from 0")
    return value


def checked_key(key: object) -> str:
    """Convert the key of a saved graph.

    Raises:
        TypeError: it is no string, or too long.
    """
    text = converted("key", string, key)
    if len(text) > LONGEST_KEY:
        raise TypeError(f"key has {len(text)} characters; it must have at most {LONGEST_KEY}")
    return text
