"""The form in which a device saves what it has compiled."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, runtime_checkable

import attrs

from webnn_py.core.device.backend import CompiledGraph

Bytes = memoryview
"""An array of unsigned bytes, in one piece."""


class UnusableFileError(Exception):
    """A file that is not there, or that holds no graph which can be loaded here; the text says why."""


@attrs.frozen(eq=False)
class SavedCode:
    """A compiled graph, in a form of its device's or as nodes.

    Attributes:
        form: which form it is.
        document: what JSON can say of it: dicts with strings for keys, lists, strings, numbers, booleans, None.
        blobs: the bytes that ``document`` speaks of, by their indices.
    """

    form: str
    document: Any
    blobs: tuple[Bytes, ...]


@runtime_checkable
class SavesCode(Protocol):
    """A backend that can serialize what it has compiled; with others, nodes are serialized and compiled again."""

    code_identity: str
    """The adapter, driver, versions and options that code depends on; code of another identity is not loaded."""

    def save_code(self, compiled: Any) -> SavedCode | Awaitable[SavedCode]:
        """Serialize a compiled graph, without the contents of its intermediates."""

    def load_code(self, code: SavedCode) -> CompiledGraph | Awaitable[CompiledGraph]:
        """Load a compiled graph; raise ``UnusableFileError`` where the code is not this backend's."""
