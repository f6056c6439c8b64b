"""Conversions of the arguments of saved graphs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from webnn_py.core.descriptors import converted, string
from webnn_py.core.message_text import shown

LONGEST_KEY: Final = 4096


def absolute_path(value: object) -> Path:
    """Convert the path of a folder.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"is {shown(value)}; it must be the path of a folder")
    return Path(value).absolute()


def byte_count(value: object) -> int:
    """Convert a number of bytes.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"is {shown(value)}; it must be a number of bytes, an integer from 0")
    return value


def checked_key(method: str, key: object) -> str:
    """Convert the key of a saved graph.

    Raises:
        TypeError: it is no string, or too long.
    """
    text = converted(f"{method}(): key", string, key)
    if len(text) > LONGEST_KEY:
        raise TypeError(f"{method}(): key has {len(text)} characters; it must have at most {LONGEST_KEY}")
    return text
