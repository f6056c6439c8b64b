"""Values as JavaScript writes them; read there, each is the same number or text again."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Final

from webnn_py.core.descriptors import MLOperandDescriptor


def text_of(text: str) -> str:
    """Return a string, in ASCII alone."""
    return json.dumps(text)


def number(value: int | float) -> str:  # noqa: PYI041 - mypy takes float for both, but not in isinstance()
    """A number: as a double where it is one, otherwise a bigint, which only integers of more than 53 bits need."""
    if isinstance(value, float):
        return _double(value)
    return str(value) if _is_double(value) else f"{value}n"


def _double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def argument(value: object) -> str:
    """Return an argument that is no operand: a number, flag, string, or sequence of these."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, Iterable):
        return f"[{', '.join(map(argument, value))}]"
    raise TypeError(f"{value!r} has no form in JavaScript")


def record(members: Mapping[str, str]) -> str:
    """Return an object of expressions by names, on one line."""
    return f"{{{', '.join(f'{_key(name)}: {value}' for name, value in members.items())}}}"


def descriptor(value: MLOperandDescriptor) -> str:
    """Return an ``MLOperandDescriptor``."""
    return record({"dataType": text_of(value.data_type), "shape": argument(value.shape)})


def _key(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain and name != PROTOTYPE else f"[{text_of(name)}]" if name == PROTOTYPE else text_of(name)


PROTOTYPE: Final = "__proto__"
"""Written as ``{__proto__: …}`` it would not be a member of that name."""
