"""Small WGSL expressions that several kernels use."""

from __future__ import annotations


def converted_integer(value: str, given: str, wanted: str) -> str:
    """Return an integer converted to another compute type; sign or zero extended to 64 bits by its own type."""
    if given in ("i32", "u32") and wanted == "i64":
        return f"widened_{given}({value})"
    if (given, wanted) == ("i32", "u64"):
        return f"u64(widened_i32({value}))"
    return f"{wanted}({value})"


def extreme(function: str, kind: str, a: str, b: str) -> str:
    """Return the maximum (``max``) or minimum (``min``) of two values of a compute type; float NaN propagates."""
    return f"{function}imum({a}, {b})" if kind == "f32" else f"{function}_{kind}({a}, {b})"


def wrapping_literal(number: int) -> str:
    """Return a u32 literal which, added with wrap-around, adds a number that may be negative."""
    return f"{number % 2**32}u"


def lookup(numbers: tuple[int, ...], index: str) -> str:
    """Return an expression (u32) that selects one of some numbers by index."""
    text = wrapping_literal(numbers[-1])
    for position, number in reversed(list(enumerate(numbers[:-1]))):
        text = f"select({text}, {wrapping_literal(number)}, {index} == {position}u)"
    return text if len(set(numbers)) > 1 else wrapping_literal(numbers[0])
