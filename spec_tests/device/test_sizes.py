"""Sizes that are known at dispatch only compute as integers do, and record the decisions that depend on them."""

import math

import numpy as np
import pytest

from webnn_py.named_sizes.decisions import Tracing, UnknownSizeError
from webnn_py.named_sizes.expressions import SymbolicSize, named_size
from webnn_py.named_sizes.values import coverage, has_size, largest, values_function, values_of

BOUNDS = {"a": (1, 40), "b": (3, 17)}
NAMES = {name: named_size(name, *bounds) for name, bounds in BOUNDS.items()}


def random_pair(random, depth):
    """Return a random function of sizes."""
    if depth == 0 or random.random() < 0.2:
        if random.random() < 0.6:
            name = str(random.choice(["a", "b"]))
            return lambda of: of[name]
        number = int(random.integers(-6, 7))
        return lambda _of: number
    left, right = random_pair(random, depth - 1), random_pair(random, depth - 1)
    kind = int(random.integers(0, 8))
    divisor = int(random.choice([1, 2, 3, 4, 8, 32]))
    return [
        lambda of: left(of) + right(of),
        lambda of: left(of) - right(of),
        lambda of: left(of) * right(of),
        lambda of: left(of) // divisor,
        lambda of: left(of) % divisor,
        lambda of: -(-left(of) // divisor),
        lambda of: left(of) + -left(of) % divisor,
        lambda of: left(of) % divisor + right(of) * (left(of) // divisor) * divisor,
    ][kind]


def test_expressions_have_the_values_of_integers_within_their_bounds():
    random = np.random.default_rng(20)
    for case in range(400):
        function = random_pair(random, 4)
        symbolic = function(NAMES)
        compute = values_function([symbolic])
        for a, b in ((1, 3), (40, 17), (7, 8), (32, 5)):
            sizes = {"a": a, "b": b}
            wanted = function(sizes)
            assert values_of(symbolic, sizes) == wanted == compute(sizes)[0], (case, symbolic)
            if isinstance(symbolic, SymbolicSize):
                assert symbolic.low <= wanted <= symbolic.high, (case, symbolic)


def test_expressions_are_as_simple_as_can_be():
    a, b = NAMES["a"], NAMES["b"]
    for expression, text in (
        (a + b - a, "b"),
        ((4 * a) // 4, "a"),
        ((4 * a + 3) // 4, "a"),
        ((8 * a) % 4, "0"),
        ((a * b) // a, "b"),
        ((a + 4) % 4 - a % 4, "0"),
        (a % 8 + a // 8 * 8, "a"),
        (b * (a % 8) + b * (a // 8) * 8, "a * b"),
        (a + -a % 8, "a + ((-a) % 8)"),
        ((a + -a % 8) // 8, "-((-a) // 8)"),
        ((a + -a % 8) // 8 * 8 - (a + -a % 8), "0"),
        (a // 100, "0"),
        (a % 64, "a"),
        (math.floor((a - 3) / 2 + 1), "((a - 1) // 2)"),
        (math.ceil(a / 2), "-((-a) // 2)"),
        (math.prod((a, 2, b)), "2 * a * b"),
        (7 // b, "(7 // b)"),
        (7 % b, "(7 % b)"),
        (7 - a, "-a + 7"),
    ):
        assert str(expression) == text


def test_decisions_that_bounds_imply_are_not_recorded():
    a, b = NAMES["a"], NAMES["b"]
    tracing = Tracing({"a": 5, "b": 6})
    with tracing.active():
        assert a >= 1
        assert b > 2
        assert a < 41
        assert b != 2
        assert b
        assert a + 1 > a
        assert min(a, 100) is a
        assert max(0.5, b) is b
    assert tracing.answers == {}


def test_decisions_are_made_for_the_given_sizes_and_recorded():
    a, b = NAMES["a"], NAMES["b"]
    tracing = Tracing({"a": 8, "b": 9}, may_specialize=True)
    with tracing.active():
        assert a % 4 == 0
        assert a < b
        assert b.bit_length() == 4
        assert min(a / 2, 3.5) == 3.5
        assert [*range(b - 5)] == [0, 1, 2, 3]
    covers = coverage(tracing)
    assert covers({"a": 8, "b": 9})
    assert not covers({"a": 7, "b": 9}), "4 does not divide it"
    assert not covers({"a": 8, "b": 10}), "a range was as long as b"
    assert not covers({"a": 12, "b": 9}), "a was less than b"
    assert not covers({"a": 4, "b": 9}), "its half was more than 3.5"


def test_without_a_tracing_decisions_are_refused():
    a, b = NAMES["a"], NAMES["b"]
    assert a != b
    assert a == NAMES["a"]
    assert {a: 1}[named_size("a", 1, 40)] == 1
    for ask in (lambda: a < b, lambda: range(a), lambda: float(a), lambda: [0] * a):
        with pytest.raises(UnknownSizeError, match=r"which is known at dispatch only|whose sign is known"):
            ask()


def test_the_largest_of_shapes():
    shape = (2, NAMES["a"] + 1)
    assert has_size(shape)
    assert not has_size((2, 3))
    assert tuple(map(largest, shape)) == (2, 41)
