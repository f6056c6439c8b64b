"""Text for terminals: whatever scripts say can be printed."""

import sys
from typing import TextIO


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line; what the stream cannot hold, as lone surrogates, is printed as escapes."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()
