"""Combiners: the accumulators of reductions, and the statements that combine elements into them.

Floats are accumulated in f32. Where that could overflow although the result does not, both the elements and scaled-down
elements are accumulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.expressions import converted_integer
from webnn_py.devices.wgpu.records.element import literal

LOWEST: Final = {"f32": -float("inf"), "i32": -(2**31), "u32": 0, "i64": -(2**63), "u64": 0}
HIGHEST: Final = {"f32": float("inf"), "i32": 2**31 - 1, "u32": 2**32 - 1, "i64": 2**63 - 1, "u64": 2**64 - 1}
LARGEST_FINITE: Final = (2 - 2**-23) * 2.0**127

SUM_SCALE: Final = 32
"""The power of two by which floats are divided so that a sum of a whole buffer does not overflow."""

LARGE_SCALE: Final = 64
"""The power of two by which large floats are divided before they are squared."""

SMALL_SCALE: Final = 86
"""The power of two by which small floats are multiplied, so that the square of the least, 2⁻¹⁴⁹, is normal."""

Item = Sequence[str]
"""The variables of an element, or of a partial result."""

Absorb = Callable[[Sequence[str], Sequence[Item], Sequence[str]], list[str]]
"""(accumulators, elements, their indices in the row) → statements that combine the elements into the accumulators.

The elements are in ascending order of their indices.
"""

Merge = Callable[[Sequence[str], Sequence[str]], list[str]]
"""(accumulators, expressions for those of another invocation) → statements that merge them."""


@attrs.frozen
class Combiner:
    """A reduction operation.

    Attributes:
        kinds: the types of the accumulators.
        start: their initial values.
        absorb: combines elements into them.
        merge: combines the accumulators of another invocation into them.
        finish: returns the results, given the accumulators.
    """

    kinds: tuple[str, ...]
    start: tuple[str, ...]
    absorb: Absorb
    merge: Merge
    finish: Callable[[Sequence[str]], list[str]]

    def without_finish(self) -> Combiner:
        """Return the first of two passes, whose results are the accumulators."""
        return attrs.evolve(self, finish=list)

    def of_partial_results(self) -> Combiner:
        """Return the second of two passes, whose elements are the accumulators of the first."""

        def absorb(variables: Sequence[str], items: Sequence[Item], _positions: Sequence[str]) -> list[str]:
            return [line for item in items for line in self.merge(variables, item)]

        return attrs.evolve(self, absorb=absorb)


def tree(operator: str, values: Sequence[str]) -> str:
    """Return expressions combined by a function or an operator, as a balanced tree."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    left, right = tree(operator, values[:half]), tree(operator, values[half:])
    return f"{operator}({left}, {right})" if operator.isidentifier() else f"({left} {operator} {right})"


def fold(
    kind: str,
    operator: str,
    start: float,
    maps: Sequence[str] = ("{}",),
    finish: Callable[[Sequence[str]], str] = lambda variables: variables[0],
) -> Combiner:
    """Return the reduction by an operator, with an accumulator for each of ``maps`` of the elements."""

    def absorb(variables: Sequence[str], items: Sequence[Item], _positions: Sequence[str]) -> list[str]:
        return [
            f"{variable} = {tree(operator, [variable, tree(operator, [map_.format(item[0]) for item in items])])};"
            for variable, map_ in zip(variables, maps, strict=True)
        ]

    def merge(variables: Sequence[str], others: Sequence[str]) -> list[str]:
        return [
            f"{variable} = {tree(operator, [variable, other])};"
            for variable, other in zip(variables, others, strict=True)
        ]

    return Combiner(
        (kind,) * len(maps), (literal(start, kind),) * len(maps), absorb, merge, lambda variables: [finish(variables)]
    )


def _bits(value: str) -> str:
    return f"(bitcast<u32>({value}) & 0x7fffffffu)"


def nan_unless_finite(value: str, decisive: str) -> str:
    """Return ``value``, or NaN if ``decisive`` is not finite; compilers may fold x - x to 0, so bits are tested."""
    return f"bitcast<f32>(select(0x7fc00000u, bitcast<u32>({value}), {_bits(decisive)} < {_exponent(128)}))"


def scaled_sum(finish: str, finish_scaled: str) -> Combiner:
    """Return a sum whose result is ``finish`` of it or, if it overflows, ``finish_scaled`` of the scaled sum.

    The scaled sum omits elements that are too small to matter then. Elements are scaled through their exponents, as
    compilers may move factors across the sum or combine them with others.
    """
    bits = "bitcast<u32>({0})"
    divided = f"select({bits} - {_powers(SUM_SCALE)}, {bits}, {_bits('{0}')} >= {_exponent(128)})"
    scaled = f"bitcast<f32>(select(0u, {divided}, {_bits('{0}')} >= {_exponent(64)}))"

    def choose(variables: Sequence[str]) -> str:
        whole, reduced = finish.format(variables[0]), finish_scaled.format(variables[1])
        return f"select({whole}, {reduced}, {_bits(variables[0])} >= {_exponent(128)})"

    return fold("f32", "+", 0, ("{}", scaled), choose)


def scaled_square(square: str) -> str:
    """Return a square divided by 2 to ``SUM_SCALE``; 0 for those that this would make subnormal."""
    bits = f"bitcast<u32>({square})"
    divided = f"select({bits} - {_powers(SUM_SCALE)}, {bits}, {bits} >= {_exponent(128)})"
    return f"bitcast<f32>(select(0u, {divided}, {bits} >= {_exponent(SUM_SCALE - 126)}))"


def inverse_root_mean_square(total: str, count: str, epsilon: str) -> str:
    """Return the factor of a normalization by the root mean square, of a sum of ``scaled_square`` of the elements."""
    return f"1.0 / sqrt({total} / {count} * {literal(2.0**SUM_SCALE, 'f32')} + {epsilon})"


def _exponent(power: int) -> str:
    """Return the bits of 2 to a power; of infinity for 128."""
    return f"{127 + power << 23:#x}u"


def root_of_squares() -> Combiner:
    """Return the root of a sum of squares, without overflow or underflow of large and small squares.

    Elements are scaled through their exponents: drivers may rearrange products with factors so that they overflow.
    """
    bits = _bits("{0}")
    is_large = f"{bits} >= {_exponent(48)} && {bits} <= {_exponent(128)}"
    is_small = f"{bits} < {_exponent(-40)}"
    # Infinity is then still large enough for its square to be infinite.
    lowered = f"bitcast<f32>(select(0u, {bits} - {_powers(LARGE_SCALE)}, {is_large}))"
    # The bits of a subnormal number count 2⁻¹⁴⁹.
    subnormal = f"f32({bits}) * {literal(2.0 ** (SMALL_SCALE - 149), 'f32')}"
    raised = f"select(bitcast<f32>({bits} + {_powers(SMALL_SCALE)}), {subnormal}, {bits} < {_exponent(-126)})"
    maps = (
        f"{lowered} * {lowered}",
        f"select({{0}} * {{0}}, 0.0, ({is_large}) || {is_small})",
        f"select(0.0, {raised} * {raised}, {is_small})",
    )

    def finish(variables: Sequence[str]) -> str:
        high, middle, low = variables
        root = f"bitcast<u32>({_root(low)})"
        counted = f"u32({_root(low)} * {literal(2.0 ** (149 - SMALL_SCALE), 'f32')} + 0.5)"
        small = f"select({root} - {_powers(SMALL_SCALE)}, {counted}, {root} < {_exponent(SMALL_SCALE - 126)})"
        small = f"bitcast<f32>(select({small}, 0u, {low} == 0.0))"
        usual = f"select(sqrt({middle} + {small} * {small}), {small}, {middle} == 0.0)"
        rest = f"bitcast<f32>(select(0u, bitcast<u32>({_root(middle)}) - {_powers(LARGE_SCALE)}, {middle} > 0.0))"
        large = f"bitcast<u32>(sqrt({high} + {rest} * {rest})) + {_powers(LARGE_SCALE)}"
        result = f"select(bitcast<u32>({usual}), min({large}, {_exponent(128)}), {high} > 0.0)"
        return f"bitcast<f32>(select({result}, 0x7fc00000u, {_bits(middle)} > {_exponent(128)}))"

    return fold("f32", "+", 0, maps, finish)


def _root(value: str) -> str:
    """Return the square root of a nonnegative value, at least 2⁻¹²⁶: drivers may compute that of 0 as 0 · ∞."""
    return f"sqrt(max({value}, {literal(2.0**-126, 'f32')}))"


def _powers(count: int) -> str:
    """Return the increment of a float's bits that multiplies it by 2 to a power."""
    return f"{count << 23:#x}u"


def extreme(kind: str, function: str) -> Combiner:
    """Return the maximum or minimum; floats also accumulate the highest magnitude bits, to detect NaN."""
    start = literal((LOWEST if function == "max" else HIGHEST)[kind], kind)
    if kind != "f32":
        return fold(kind, f"{function}_{kind}", start=(LOWEST if function == "max" else HIGHEST)[kind])

    def absorb(variables: Sequence[str], items: Sequence[Item], _positions: Sequence[str]) -> list[str]:
        values = [item[0] for item in items]
        bits = [_bits(value) for value in values]
        return merge(variables, [tree(function, values), tree("max", bits)])

    def merge(variables: Sequence[str], others: Sequence[str]) -> list[str]:
        (value, bits), (other, other_bits) = variables, others
        return [f"{value} = {function}({value}, {other});", f"{bits} = max({bits}, {other_bits});"]

    def finish(variables: Sequence[str]) -> list[str]:
        value, bits = variables
        return [f"bitcast<f32>(select(bitcast<u32>({value}), 0x7fc00000u, {bits} > 0x7f800000u))"]

    return Combiner(("f32", "u32"), (start, "0u"), absorb, merge, finish)


def index_of_extreme(kind: str, index_kind: str, *, highest: bool) -> Combiner:
    """Return argMax or argMin: the index of the first element with the highest or lowest key, which orders elements.

    NaN has the most extreme key for both. Keys are not negated for argMin, as NVIDIA's driver 580 miscompiles
    comparisons of inverted bits of a negated 64-bit quotient that wraps.
    """
    more = ">" if highest else "<"
    if kind == "f32":
        key_kind, of_nan = "i32", literal((HIGHEST if highest else LOWEST)["i32"], "i32")
        key = f"select(order({{0}}), {of_nan}, is_nan({{0}}))"
    else:
        key_kind, key = kind, "{}"

    def absorb(variables: Sequence[str], items: Sequence[Item], positions: Sequence[str]) -> list[str]:
        best, place = variables
        lines = []
        for item, position in zip(items, positions, strict=True):
            lines += [f"{{ let key = {key.format(item[0])};"]
            lines += [f"if (key {more} {best}) {{ {best} = key; {place} = {position}; }} }}"]
        return lines

    def merge(variables: Sequence[str], others: Sequence[str]) -> list[str]:
        (best, place), (other, other_place) = variables, others
        return [
            f"{{ let key = {other}; let position = {other_place};",
            f"if (key {more} {best} || (key == {best} && position < {place})) {{",
            f"{best} = key; {place} = position; }} }}",
        ]

    # If no element is more extreme than the start, all equal it, and the first index is right.
    start = (literal((LOWEST if highest else HIGHEST)[key_kind], key_kind), "0u")

    def finish(variables: Sequence[str]) -> list[str]:
        return [converted_integer(variables[1], "u32", index_kind)]

    return Combiner((key_kind, "u32"), start, absorb, merge, finish)


def log_sum_exp(finish: Callable[[Sequence[str]], list[str]]) -> Combiner:
    """Return log-sum-exp, which accumulates the maximum, clamped to finite floats, and the scaled sum."""
    lowest, highest = literal(-LARGEST_FINITE, "f32"), literal(LARGEST_FINITE, "f32")

    def absorb(variables: Sequence[str], items: Sequence[Item], _positions: Sequence[str]) -> list[str]:
        top, total = variables
        values = [item[0] for item in items]
        sums = tree("+", [f"exp_f32({value} - higher)" for value in values])
        return [
            f"{{ let higher = min({tree('max', [top, tree('max', values)])}, {highest});",
            f"{total} = {total} * exp_f32({top} - higher) + {sums};",
            f"{top} = higher; }}",
        ]

    def merge(variables: Sequence[str], others: Sequence[str]) -> list[str]:
        (top, total), (other_top, other_total) = variables, others
        return [
            f"{{ let higher = max({top}, {other_top});",
            f"{total} = {total} * exp_f32({top} - higher) + {other_total} * exp_f32({other_top} - higher);",
            f"{top} = higher; }}",
        ]

    return Combiner(("f32", "f32"), (lowest, "0.0"), absorb, merge, finish)


def moments(epsilon: str) -> Combiner:
    """Return the mean and the inverse standard deviation; counts, means and squares are merged pairwise."""

    def absorb(variables: Sequence[str], items: Sequence[Item], _positions: Sequence[str]) -> list[str]:
        values = [item[0] for item in items]
        squares = [f"({value} - middle) * ({value} - middle)" for value in values]
        return [
            f"{{ let middle = {tree('+', values)} / {len(values)}.0;",
            f"let squares = {tree('+', squares)};",
            *merge(variables, [f"{len(values)}.0", "middle", "squares"]),
            "}",
        ]

    def merge(variables: Sequence[str], others: Sequence[str]) -> list[str]:
        (count, mean, squares), (other_count, other_mean, other_squares) = variables, others
        return [
            f"{{ let both = {count} + {other_count};",
            f"let part = select({other_count} / both, 0.0, both == 0.0);",
            f"let distance = {other_mean} - {mean};",
            f"let weight = {count} * part;",
            "let apart = select(0.0, distance * distance * weight, weight > 0.0);",  # avoids ∞ · 0
            f"{squares} = {squares} + ({other_squares} + apart);",
            f"{mean} = {mean} + distance * part;",
            f"{count} = both; }}",
        ]

    def finish(variables: Sequence[str]) -> list[str]:
        count, mean, squares = variables
        return [mean, nan_unless_finite(f"1.0 / sqrt({squares} / {count} + {epsilon})", mean)]

    return Combiner(("f32", "f32", "f32"), ("0.0", "0.0", "0.0"), absorb, merge, finish)
