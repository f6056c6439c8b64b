"""Names of the module's variables, near those that a drawing has."""

import re
from typing import Final

_WORDS: Final = (
    "arguments as async await break case catch class const continue debugger "
    "default delete do else enum eval export extends false finally for from function "
    "get if implements import in Infinity instanceof interface let NaN new null of "
    "package private protected public return set static super switch this throw true try "
    "typeof undefined var void while with yield "
)
RESERVED: Final = frozenset(_WORDS.split())
"""Names that a variable must not or should not have."""

LONGEST: Final = 48
"""Characters of a name before it gets a number."""


def identifier(wanted: str) -> str:
    """Return an identifier that is like the name that is wanted."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", wanted).strip("_")[:LONGEST]
    return name if name[:1].isalpha() else f"_{name}"
