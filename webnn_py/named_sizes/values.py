"""The values of sizes, and of shapes that have sizes among their dimensions, when the names' sizes are known."""

from collections.abc import Callable, Iterable
from typing import Any

from webnn_py.named_sizes.decisions import DECIDED, Sizes, Tracing
from webnn_py.named_sizes.expressions import SymbolicSize, code_of, value_of


def values_function(expressions: Iterable[Any]) -> Callable[[Sizes], tuple[int, ...]]:
    """A function of the names' sizes that gives the values of expressions, as fast as Python can compute them."""
    text = "".join(f"{code_of(expression)}, " for expression in expressions)
    # Names are in it as literals, and nothing else is anybody's but this module's.
    function: Callable[[Sizes], tuple[int, ...]] = eval(f"lambda s: ({text})", {"__builtins__": {}, "int": int})  # noqa: S307
    return function


def coverage(tracing: Tracing) -> Callable[[Sizes], bool]:
    """Return a check of whether all answers of a finished tracing are the same for other sizes."""
    answers = list(tracing.answers.values())
    values = values_function(answer.expression for answer in answers)
    wanted = [(DECIDED[answer.relation], answer.holds) for answer in answers]
    return lambda sizes: all(
        decide(value) == holds for (decide, holds), value in zip(wanted, values(sizes), strict=True)
    )


def largest(number: Any) -> int:
    """Return a number as it is; of a size, the greatest that it may be."""
    return number.high if type(number) is SymbolicSize else number


def rough(number: Any) -> int:
    """Return a number as it is; for a size, the power of two that is no less, which many sizes have in common."""
    return 1 << (number - 1).bit_length() if type(number) is SymbolicSize else int(number)


def values_of(item: Any, sizes: Sizes) -> Any:
    """Return the values of all sizes in tuples and lists."""
    if isinstance(item, (tuple, list)):
        return type(item)(values_of(part, sizes) for part in item)
    return value_of(item, sizes)


def has_size(item: object) -> bool:
    """Return whether there is a size among the items of tuples and lists."""
    return any(map(has_size, item)) if isinstance(item, (tuple, list)) else type(item) is SymbolicSize
