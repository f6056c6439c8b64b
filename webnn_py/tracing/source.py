"""The place in a user's program from which a call was made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import attrs

from webnn_py.core.unreported_errors import Line, line_number, user_line

_CALLING: Final[ContextVar[Source | None]] = ContextVar("place in a program of another language", default=None)


@attrs.frozen
class Source:
    """A place in a user's program.

    Attributes:
        file: the file's path.
        line: the line's number.
        function: the function's name, qualified; "" where a language has none.
        settled: how many promises the program had seen settled, where it runs in another process; places that differ
            in it alone are equal.
    """

    file: str
    line: int
    function: str
    settled: int | None = attrs.field(default=None, eq=False, repr=False)

    def __str__(self) -> str:
        here = f"{Path.cwd()}{os.sep}"
        place = f"{self.file.removeprefix(here)}:{self.line}"
        return f"{place} in {self.function}" if self.function else place


Place = Line | Source | None
"""The place that makes a call, as it is taken down: the user's line; None if trio makes it."""


@lru_cache(maxsize=10_000)
def _source_of(code: CodeType, instruction: int) -> Source:
    """Return the place that was recorded as code and instruction; most are requested many times."""
    return Source(code.co_filename, line_number(code, instruction), code.co_qualname)


def calling_place(frame: FrameType) -> Place:
    """Return the place that makes the call that is under way, from a frame outwards, or in another language."""
    return _CALLING.get() or user_line(frame)


def source_at(place: Place) -> Source | None:
    """Return the source that was taken down."""
    return place if place is None or isinstance(place, Source) else _source_of(*place)


@contextmanager
def called_from(place: Source) -> Iterator[None]:
    """Within, calls are made for a program of another language, at this place in it."""
    token = _CALLING.set(place)
    try:
        yield
    finally:
        _CALLING.reset(token)
