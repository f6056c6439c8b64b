"""The script ``webnn-py``: Ctrl-C ends it also while the package is imported, and while Python ends.

It stands beside the package because all that stands in the package is imported after the package itself.
"""

import os
import signal
import sys
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130
"""The status that shells give a program which Ctrl-C ended."""


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)  # an exception is swallowed at some places of an import, and told of at Python's end


def main() -> int:
    """Run the command, and return its exit status."""
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # it may be ignored: in the background
    if is_usual:
        signal.signal(signal.SIGINT, _end)
    from webnn_py.cli import main as command  # noqa: PLC0415 - what takes its time

    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return command()
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, _end)


if __name__ == "__main__":
    sys.exit(main())
