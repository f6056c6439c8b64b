"""Make the cases of the element-wise logical operators: computed element by element with Python's own operators."""

import math
import operator as python
import platform
from collections.abc import Callable, Sequence

import numpy as np

from spec_tests.operators.elementwise import binary_cases, unary_cases
from spec_tests.operators.oracle import (
    ALL_TYPES,
    BROADCASTS,
    FLOAT_TYPES,
    SHAPES,
    Cases,
    case,
    extremes,
    generator,
    spread,
    write,
)

ORACLE = f"Python {platform.python_version()}'s own operators on its numbers, element by element"

COMPARISONS = {
    "equal": python.eq,
    "not_equal": python.ne,
    "greater": python.gt,
    "greater_or_equal": python.ge,
    "lesser": python.lt,
    "lesser_or_equal": python.le,
}
CONNECTIVES = {
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
    "logical_xor": lambda a, b: bool(a) != bool(b),
}
TESTS = {"is_nan": math.isnan, "is_infinite": math.isinf}


def each(function: Callable[..., bool]) -> Callable[..., np.ndarray]:
    """The function on every element of arrays that broadcast: 0 or 1."""

    def compute(*arrays: np.ndarray) -> np.ndarray:
        broadcast = np.broadcast_arrays(*arrays)
        rows = zip(*[array.ravel().tolist() for array in broadcast], strict=True)
        return np.array([function(*row) for row in rows], np.uint8).reshape(broadcast[0].shape)

    return compute


def few(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Few different values, so that many pairs are equal."""
    return spread(rng, "int8", shape, -1, 1).astype(data_type)


def truths(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Zeros, and much that is true without being 1."""
    return spread(rng, data_type, shape, 0, 255) * spread(rng, data_type, shape, 0, 1)


def tests(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Zeros, ones, NaN and both infinities."""
    return np.asarray(rng.choice([0, 1, np.nan, np.inf, -np.inf], shape)).astype(data_type)


def choose(condition: np.ndarray, true_value: np.ndarray, false_value: np.ndarray) -> np.ndarray:
    """The oracle of where: one element after another."""
    arrays = np.broadcast_arrays(condition, true_value, false_value)
    chosen = [b if a else c for a, b, c in zip(*[array.ravel() for array in arrays], strict=True)]
    return np.array(chosen, true_value.dtype).reshape(arrays[0].shape)


def where_cases() -> Cases:
    """Every data type and rank, and broadcasts of the three operands to one another."""
    cases = []

    def add(name: str, arrays: Sequence[np.ndarray], constants: str = "") -> None:
        names = ("condition", "true_value", "false_value")
        inputs = dict(zip(names, arrays, strict=True))
        cases.append(case(name, inputs, choose(*arrays), constants=constants.split()))

    def random(data_type: str, *shapes: Sequence[int]) -> list[np.ndarray]:
        rng = generator("where", data_type, *shapes)
        return [truths(rng, "uint8", shapes[0]), *[spread(rng, data_type, shape, -99, 99) for shape in shapes[1:]]]

    for data_type in ALL_TYPES:
        for shape in SHAPES:
            add(f"{data_type}, rank {len(shape)}", random(data_type, shape, shape, shape))
        values = extremes(data_type)
        condition = np.array([0, 1, 255], np.uint8).reshape(3, 1)
        add(f"{data_type}, extreme values", [condition, values, np.ascontiguousarray(values[::-1])])
    for index, (a, b) in enumerate(BROADCASTS):
        data_type = ALL_TYPES[index % len(ALL_TYPES)]
        for name, shapes in {
            "a condition": (a, b, b),
            "a true value": (b, a, b),
            "a false value": (b, b, a),
            "both values": (a, b, a),
        }.items():
            add(f"{data_type}, {name} of {list(a)} with {list(b)}", random(data_type, *shapes))
    add("float32, three shapes, none of them the output's", random("float32", (2, 1, 1), (3, 1), (4,)))
    for constants in ("condition", "true_value", "false_value", "condition true_value false_value"):
        add(f"float32, constant {constants}", random("float32", (2, 3), (3,), ()), constants)
    return cases


def main() -> None:
    """Write the files of the category."""
    for operator, function in COMPARISONS.items():
        write(__file__, operator, ORACLE, binary_cases(operator, each(function), ALL_TYPES, values=(few, few)))
    for operator, function in CONNECTIVES.items():
        write(__file__, operator, ORACLE, binary_cases(operator, each(function), ["uint8"], values=(truths, truths)))
    negation = unary_cases("logical_not", each(python.not_), ["uint8"], values=truths, parameter="a")
    write(__file__, "logical_not", ORACLE, negation)
    for operator, function in TESTS.items():
        cases = unary_cases(operator, each(function), FLOAT_TYPES, values=tests, parameter="a")
        write(__file__, operator, ORACLE, cases)
    write(__file__, "where", ORACLE, where_cases())


if __name__ == "__main__":
    main()
