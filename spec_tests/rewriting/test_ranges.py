"""Value ranges contain the results of graphs, for every operator."""

import math

import numpy as np
import pytest

from spec_tests.operators.minimal import draw_operands, outputs_of
from spec_tests.operators.test_facts import calls, feeds_of
from spec_tests.support.computing import compute
from spec_tests.support.rules import drawn
from webnn_py import MLGraphBuilder, MLOperand
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.rewriting.ranges import MOST, MOST_CONSTANTS, ValueRanges
from webnn_py.drawn_graphs import drawing_of

LARGEST = 4.0
BOUNDS = {OPERATORS["identity"]: lambda _ranges, _node: (-LARGEST, LARGEST)}
"""The rule that gives inputs a range: these are read through an identity."""

DRAWS = (
    lambda rng, size: rng.uniform(-LARGEST, LARGEST, size),
    lambda rng, size: rng.choice([-LARGEST, LARGEST, 0.0], size),
    lambda _rng, size: np.full(size, LARGEST),
)
UNKNOWN = {
    *("batch_normalization", "conv_transpose2d", "cumulative_sum", "div", "elu", "exp", "instance_normalization"),
    *("l2_pool2d", "layer_normalization", "linear", "log", "pow", "prelu", "reciprocal", "round_even", "ceil", "floor"),
    *("reduce_l1", "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp", "reduce_product", "reduce_sum_square"),
    *("softplus", "sqrt", "tan", "pad", "gru", "gru_cell", "lstm", "lstm_cell"),
}
"""Operators whose results of float32 have no range, even where their operands have."""


def contents(constant):
    return constant.data


def bounded(b, x):
    """An operand that has the range of :data:`BOUNDS` if it is of float32."""
    return b.identity(x) if x.data_type == "float32" else x


def bounded_operands(b, value):
    if isinstance(value, list):
        return [bounded_operands(b, item) for item in value]
    return bounded(b, value) if isinstance(value, MLOperand) else value


def range_of(draw, data_type="float32"):
    """The range of a value that is drawn from an input; one of float32 has elements of at most 4."""
    graph = drawn(lambda b, x: draw(b, bounded(b, x)), [2, 3], data_type)
    return ValueRanges(contents, BOUNDS).of(graph.outputs["y"])


async def test_every_operator_computes_what_lies_in_its_range(numpy_context):
    found, known, rng = [], set(), np.random.default_rng(3)
    for name in OPERATORS:
        for arguments in calls(name):
            builder = MLGraphBuilder(numpy_context)
            operands = draw_operands(builder, arguments)
            operands = {key: bounded_operands(builder, value) for key, value in operands.items()}
            graph = drawing_of("test", outputs_of(getattr(builder, name)(**operands)))
            ranges = ValueRanges(contents, BOUNDS)
            bounds = {key: ranges.of(value) for key, value in graph.outputs.items()}
            known.update(name for one in bounds.values() if one is not None)
            for draw in DRAWS:
                builder = MLGraphBuilder(numpy_context)
                outputs = outputs_of(getattr(builder, name)(**draw_operands(builder, arguments)))
                results = await compute(numpy_context, builder, feeds_of(arguments, draw, rng), outputs)
                for key, (low, high) in ((key, one) for key, one in bounds.items() if one is not None):
                    if not (low <= results[key].min() and results[key].max() <= high):
                        found.append(f"{name}: {results[key].min()} to {results[key].max()}, not {low} to {high}")
    assert not found, "\n".join(found)
    assert OPERATORS.keys() - known == UNKNOWN


CASES = {
    "clamped": (lambda b, x: b.clamp(x, min_value=-1, max_value=9), (-1.08, 4.08)),
    "relu": (lambda b, x: b.relu(x), (0, 4.08)),
    "a sum that is clipped": (lambda b, x: b.sigmoid(b.add(x, 1)), (0, 1)),
    "divided by what may be 0": (lambda b, x: b.div(1, x), None),
    "divided by what is not 0": (lambda b, x: b.div(x, 2), (-2.04, 2.04)),
    "integers of a cast": (lambda b, x: b.cast(x, "uint8"), (0, 255)),
    "integers that are known": (lambda b, x: b.cast(b.cast(b.greater(x, 0), "int64"), "int8"), (0, 1)),
    "an index": (lambda b, x: b.arg_max(x, 1), (0, 2)),
    "with NaN": (lambda b, x: b.add(x, math.nan), None),
    "with infinity": (lambda b, x: b.min(x, math.inf), None),
    "too large": (lambda b, x: b.mul(x, MOST / 4), None),
    "of an unknown value": (lambda b, x: b.relu(b.log(x)), None),
}


def with_numbers(b, draw, x):
    """Draw with numbers as constants of float32."""

    class Builder:
        def __getattr__(self, name):
            def build(*args, **options):
                operands = [b.constant(np.float32(a)) if isinstance(a, int | float) else a for a in args]
                return getattr(b, name)(*(args if name == "arg_max" else operands), **options)

            return build

    return draw(Builder(), x)


@pytest.mark.parametrize("case", CASES)
def test_ranges_are_as_narrow_as_they_can_be(case):
    draw, expected = CASES[case]
    found = range_of(lambda b, x: with_numbers(b, draw, x))
    assert found == (None if expected is None else pytest.approx(expected))


def test_integers_have_the_range_of_their_data_type_where_nothing_is_known_and_where_they_may_wrap_around():
    assert range_of(lambda _b, x: x, "int8") == (-128, 127)
    assert range_of(lambda b, x: b.add(x, b.constant(np.int8(1))), "int8") == (-128, 127)
    assert range_of(lambda b, x: b.add(b.cast(x, "int32"), b.constant(np.int32(1))), "int8") == (-127, 128)


def test_inputs_have_no_range():
    graph = drawn(lambda b, x: b.relu(x), [2, 3])
    assert ValueRanges(contents).of(graph.outputs["y"]) is None


def test_constants_are_read_up_to_a_number_of_elements_and_once():
    reads = []

    def read(constant):
        reads.append(constant)
        return constant.data

    half = np.ones(MOST_CONSTANTS // 2 + 1, np.float32)
    graph = drawn(lambda b, x: b.concat([b.constant(half), b.reshape(x, [6]), b.constant(half)], 0), [2, 3])
    first, _, second = graph.nodes[-1].inputs
    ranges = ValueRanges(read)
    for _ in range(2):
        assert (ranges.of(first), ranges.of(second)) == ((1, 1), None)
    assert reads == [first]


def test_long_chains_have_a_range():
    def draw(b, x):
        for _ in range(5000):
            x = b.tanh(x)
        return x

    assert range_of(draw) == (-1, 1)
