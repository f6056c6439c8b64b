"""A program that is played in several places: a body of JavaScript, and what is known of what it gives."""

import attrs
import numpy as np

from spec_tests.support.random_graphs.bounds import Known


@attrs.frozen
class Step:
    """A call of the builder whose results are outputs of the graph.

    Attributes:
        operator: the method.
        features: what differences may be about: names of options given, "option=value", data types, kinds of operands.
        operands: the names of the values that it reads; of events, the calls about a tensor that is destroyed.
        known: what is known of the result; None where results are compared by units in the last place.
        given: the arrays that it reads, where each element of the result is of one element of each.
    """

    operator: str
    features: frozenset[str]
    operands: tuple[str, ...] = ()
    known: Known | None = None
    given: tuple[np.ndarray, ...] = attrs.field(default=(), eq=False)


@attrs.frozen
class Program:
    """A program.

    Attributes:
        kind: which generator has written it.
        number: which of that generator's.
        source: the body of an async function, in the scope of ``play.js``.
        steps: the calls whose results it computes, by output; of other programs what they are about, by any name.
    """

    kind: str
    number: int
    source: str
    steps: dict[str, Step]

    @property
    def name(self) -> str:
        return f"{self.kind} {self.number}"


def number_text(value):
    """Write a number in JavaScript, in the type with which the typed array holds the same."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    value = float(value)
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0" if value == 0 and np.signbit(value) else repr(value).removesuffix(".0")


def data_text(array):
    """A typed array with the elements of an array."""
    big = "n" if array.dtype in (np.int64, np.uint64) else ""
    return f"data('{array.dtype}', [{', '.join(number_text(item) + big for item in array.ravel())}])"


def descriptor_text(data_type, shape):
    """An operand descriptor."""
    return f"{{dataType: '{data_type}', shape: [{', '.join(map(str, shape))}]}}"
