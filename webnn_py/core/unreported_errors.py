"""Failures and refusals that nothing has reported: a warning reports them, at the line of the call that failed."""

import os
import sys
import sysconfig
import warnings
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, final

import outcome
import trio

_PACKAGE: Final = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES: Final = tuple(str(Path(str(module.__file__)).parent) + os.sep for module in (trio, outcome))


@cache
def _path(name: str) -> str:
    """Return a folder of Python's, by its name in ``sysconfig``, which takes its time to find it."""
    return sysconfig.get_path(name) + os.sep


is_users: Final[dict[str, bool | None]] = {}
"""By a file's name: whether it is a user's; None for trio's, which end the search. Looked up for every frame."""

Line = tuple[CodeType, int]
"""A line of a program: its code and the instruction there, which cost less to take down than the line's number."""


def calling_line(depth: int = 1) -> Line:
    """Return the line that called the function that calls this, or that many frames further out."""
    frame = sys._getframe(depth + 1)
    return frame.f_code, frame.f_lasti


def user_line(frame: FrameType | None) -> Line | None:
    """Return the innermost line outside of this package, from a frame outwards; None when trio made the call."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename not in is_users:
            is_users[code.co_filename] = _is_users(code.co_filename)
        found = is_users[code.co_filename]
        if found is None:
            break
        if found:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def _is_users(file: str) -> bool | None:
    if file.startswith(_LIBRARIES):
        return None
    is_installed = file.startswith((_path("purelib"), _path("platlib")))
    return not file.startswith(_PACKAGE) and (is_installed or not file.startswith(_path("stdlib")))


@final
class UnreportedError:
    """An error to report; it warns if it is dropped unreported and was missed."""

    __slots__ = ("_is_reported", "_line", "_words", "is_missed")

    def __init__(self, words: str, line: Line | None, *, is_missed: bool) -> None:
        """Hold what to say.

        Args:
            words: what has failed, and how.
            line: of the call that failed, if that is known.
            is_missed: whether it should have been asked for; this may change.
        """
        self._words = words
        self._line = line
        self._is_reported = False
        self.is_missed = is_missed

    def mark_reported(self) -> None:
        """Note that it has been reported, or is known."""
        self._is_reported = True

    def __del__(self) -> None:
        if self._is_reported or not self.is_missed:
            return
        if self._line is None:
            warnings.warn(self._words, RuntimeWarning, stacklevel=1)
        else:
            code, instruction = self._line
            warnings.warn_explicit(self._words, RuntimeWarning, code.co_filename, line_number(code, instruction))


def line_number(code: CodeType, instruction: int) -> int:
    """Return the number of the line that an instruction belongs to."""
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return next(lines, None) or code.co_firstlineno
