"""The form in which a device saves what it has compiled."""

from __future__ import annotations

from typing import Any

import attrs

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
