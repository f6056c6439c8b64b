"""Output of the command: lines whose control characters are escaped, since most of their words come from files."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from webnn_py.core.message_text import visible
from webnn_py.javascript.words import say


def print_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines, each on one line of the terminal, whatever characters it contains.

    Args:
        lines: the lines, without line ends.
        stream: where to; the standard output by default.

    Raises:
        OutputClosedError: the output is closed.
    """
    for line in lines:
        say(visible(line), stream)


def print_json(document: Mapping[str, Any]) -> None:
    """Print a JSON object in ASCII without control characters; JSON itself does not escape DEL.

    Raises:
        OutputClosedError: the output is closed.
        ValueError: it has a NaN or an infinity, which JSON lacks.
    """
    say(json.dumps(document, indent=2, allow_nan=False).replace("\x7f", "\\u007f"))
