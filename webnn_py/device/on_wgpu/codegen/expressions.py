"""Small WGSL expressions that several kernels have."""

from __future__ import annotations


def converted_integer(value: str, given: str, wanted: str) -> str:
    """An integer of one computing type as another's; to 64 bits it is extended as its own signedness says."""
    if given in ("i32", "u32") and wanted == "i64":
        return f"widened_{given}({value})"
    if (given, wanted) == ("i32", "u64"):
        return f"u64(widened_i32({value}))"
    return f"{wanted}({value})"


def extreme(function: str, kind: str, a: str, b: str) -> str:
    """The highest (``max``) or the lowest (``min``) of two values of a computing type; of floats NaN, if one is."""
    return f"{function}imum({a}, {b})" if kind == "f32" else f"{function}_{kind}({a}, {b})"


def wrapping_literal(number: int) -> str:
    """A literal that adds a number, which may be negative, to a u32."""
    return f"{number % 2**32}u"


def lookup(numbers: tuple[int, ...], index: str) -> str:
    """An expression (u32) for one of some numbers."""
    text = wrapping_literal(numbers[-1])
    for position, number in reversed(list(enumerate(numbers[:-1]))):
        text = f"select({text}, {wrapping_literal(number)}, {index} == {position}u)"
    return text if len(set(numbers)) > 1 else wrapping_literal(numbers[0])
