"""Text for terminals: whatever scripts say can be printed."""

import errno
import sys
from typing import Final, TextIO

CLOSED: Final = frozenset({errno.EPIPE, errno.EBADF, errno.EINVAL, errno.EIO})
"""The errors of writing to a closed pipe, on POSIX and on Windows, or to a terminal that is gone."""


class OutputClosedError(Exception):
    """The output is closed or cannot be written: there is no point in continuing."""


class OutputFailedError(OutputClosedError):
    """It cannot be written although it is open: a disk is full, for one. The message says why."""


def say(text: str, stream: TextIO | None = None, *, end: str = "\n") -> None:
    """Print a line, or with another ``end`` a part of one; what the stream cannot hold is printed as escapes.

    Raises:
        OutputClosedError: the stream is closed, at its other end or at this one.
        OutputFailedError: it is open, and cannot be written.
    """
    stream = stream or sys.stdout
    if stream is None:  # Python's, when it was started without one
        raise OutputClosedError("the standard output is closed")
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + end)
        stream.flush()
    except (OSError, ValueError) as error:  # ValueError: Python has closed it
        if isinstance(error, OSError) and error.errno not in CLOSED:
            raise OutputFailedError(error.strerror or str(error)) from error
        raise OutputClosedError(f"the output cannot be written: {error}") from error
