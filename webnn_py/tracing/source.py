"""The place in a user's program from which a call was made."""

from __future__ import annotations

import os
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import attrs
import outcome
import trio

from webnn_py.unreported_errors import line_number

_PACKAGE: Final = str(Path(__file__).parent.parent) + os.sep
_LIBRARIES: Final = tuple(str(Path(str(module.__file__)).parent) + os.sep for module in (trio, outcome))

_STANDARD: Final = sysconfig.get_path("stdlib") + os.sep
_INSTALLED: Final = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))

is_users: Final[dict[str, bool | None]] = {}
"""By a file's name: whether it is a user's; None for trio's, which end the search. Looked up for every frame."""


@attrs.frozen
class Source:
    """A place in a user's program.

    Attributes:
        file: the file's path.
        line: the line's number.
        function: the function's name, qualified; "" where a language has none.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        here = f"{Path.cwd()}{os.sep}"
        place = f"{self.file.removeprefix(here)}:{self.line}"
        return f"{place} in {self.function}" if self.function else place


@lru_cache(maxsize=10_000)
def source_of(code: CodeType, instruction: int) -> Source:
    """Return the place that was recorded as code and instruction; most are requested many times."""
    return Source(code.co_filename, line_number(code, instruction), code.co_qualname)


def user_line(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """Return the code and instruction of the innermost line outside of this package, from a frame outwards.

    The code is None when trio made the call.
    """
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
    return None, 0


def _is_users(file: str) -> bool | None:
    if file.startswith(_LIBRARIES):
        return None
    return not file.startswith(_PACKAGE) and (file.startswith(_INSTALLED) or not file.startswith(_STANDARD))
