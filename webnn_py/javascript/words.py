"""Text for terminals: whatever scripts say can be printed."""

import sys
from typing import TextIO


class OutputClosedError(Exception):
    """Nobody reads what is printed any more, or it cannot be written: there is no use in going on."""


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line; what the stream cannot hold, as lone surrogates, is printed as escapes.

    Raises:
        OutputClosedError: the stream is closed, at its other end or at this one.
    """
    stream = stream or sys.stdout
    if stream is None:  # Python's, when it was started without one
        raise OutputClosedError("the standard output is closed")
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except (OSError, ValueError) as error:  # ValueError: Python has closed it
        raise OutputClosedError(f"what was said cannot be written: {error}") from error
