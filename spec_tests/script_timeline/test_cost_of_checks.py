"""No check takes more work than in proportion to what it is given, and no message grows with it.

Work is counted, not timed: the items that a shape rule reads, and the functions that a whole call calls.
"""

import gc
import itertools
import sys
from collections.abc import Sequence
from typing import get_args, get_origin

import numpy as np
import pytest

from spec_tests.operators.minimal import draw_operands, minimal, operand_rows
from spec_tests.support.scene import ONES, set_scene
from webnn_py import MLGraphBuilder, MLOperand, MLPromise
from webnn_py.core.descriptors import MAX_ITEMS
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.core.operators.rules import Refused

COUNT = 2000
READINGS = 12
"""The most times that a rule may read each item: to convert it, to check it and to word a refusal."""

LONGEST_MESSAGE = 1000
SLACK = 200
"""The cost of a call besides, and the most that a message may cost."""


class Counted(tuple):  # noqa: SLOT001 - slots of a tuple cannot hold a number
    """A sequence that counts how many items are read of it."""

    read = 0

    def __iter__(self):
        for item in super().__iter__():
            self.read += 1
            yield item

    def __getitem__(self, index):
        found = super().__getitem__(index)
        self.read += len(found) if isinstance(index, slice) else 1
        return found

    def __contains__(self, item):
        self.read += len(self)
        return super().__contains__(item)


def sequences(operator):
    """The parameters that take sequences."""
    for name, hint in operator.hints.items():
        if any(get_origin(kind) is Sequence for kind in (hint, *get_args(hint))):
            yield name


CASES = [(name, parameter) for name, operator in OPERATORS.items() for parameter in sequences(operator)]
CONTENTS = {
    "zeros": lambda count: (0,) * count,
    "ones": lambda count: (1,) * count,
    "all different": lambda count: tuple(range(count)),
    "the highest": lambda count: (2**32 - 1,) * count,
}


def work_of_rule(builder, name, parameter, content, count):
    """Return how many of ``count`` items a shape rule reads, and its refusal."""
    operator = OPERATORS[name]
    # Of the highest ranks: a scalar has no axes that could all be right.
    ranks = {operand: row.ranks.max for operand, row in operand_rows(operator).items()}
    drawn = draw_operands(builder, minimal(name, rank=ranks))
    arguments = operator.bind((), drawn)
    items = CONTENTS[content](count)
    if MLOperand in get_args(operator.hints[parameter]):
        items = tuple(drawn[parameter][0] for _ in items)
    arguments.values[parameter] = counted = Counted(items)
    try:
        operator.infer(arguments)
    except Refused as refused:
        return counted.read, str(refused)
    return counted.read, ""


@pytest.mark.parametrize(("name", "parameter"), CASES, ids=[f"{name}-{parameter}" for name, parameter in CASES])
async def test_a_rule_reads_each_item_a_few_times_at_most(numpy_context, name, parameter):
    for content in CONTENTS:
        readings = []
        for count in (COUNT, 2 * COUNT):
            read, words = work_of_rule(MLGraphBuilder(numpy_context), name, parameter, content, count)
            readings.append(read)
            assert len(words) <= LONGEST_MESSAGE, f"{content}: a message of {len(words)} characters"
        few, many = readings
        assert few <= READINGS * COUNT + SLACK, f"{content}: {few} readings of {COUNT} items"
        assert many <= 2 * few + SLACK, f"{content}: {few} readings of {COUNT} items, {many} of twice as many"


def calls_of(action):
    """Return how many functions an action calls, Python's and C's, without garbage collection."""
    count = 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(profile)
    try:
        outcome = action()
    except TypeError as error:
        outcome = error
    finally:
        sys.setprofile(before)
        gc.enable()
    return count, outcome


def letters(count):
    return "é" * count


METHODS = {
    "create_buffer: a long shape": lambda s, n: s.context.create_buffer(data_type="int8", shape=[1] * n),
    "create_buffer: high dimensions": lambda s, n: s.context.create_buffer(data_type="int8", shape=[2**31] * n),
    "create_buffer: a long name of a data type": lambda s, n: s.context.create_buffer(data_type=letters(n), shape=[]),
    "create_constant_buffer: a long shape": lambda s, n: s.context.create_constant_buffer(
        b"", data_type="int8", shape=range(1, n)
    ),
    "create_context: a long name of a device": lambda s, n: s.ml.create_context(backend=letters(n)),
    "create_context: many options": lambda s, n: s.ml.create_context(**{f"option_{i}": i for i in range(n)}),
    "create_context: a long option": lambda s, n: s.ml.create_context(**{letters(n): 1}),
    "create_context: a long option of a device": lambda s, n: s.ml.create_context(backend="numpy", **{letters(n): 1}),
    "create_context: a list": lambda s, n: s.ml.create_context(power_preference=["default"] * n),
    "write_buffer: data of many axes": lambda s, n: s.context.write_buffer(s.y, np.zeros((n, 1, 1, 2), np.float32)),
    "write_buffer: a list": lambda s, n: s.context.write_buffer(s.y, [1.0] * n),
    "read_buffer: a list": lambda s, n: s.context.read_buffer([s.y] * n),
    "dispatch: many inputs": lambda s, n: s.context.dispatch(s.graph, {f"x{i}": s.x for i in range(n)}, {"y": s.y}),
    "dispatch: many names": lambda s, n: s.context.dispatch(s.graph, {letters(n): s.x}, {"y": s.y}),
    "dispatch: a long list": lambda s, n: s.context.dispatch(s.graph, [s.x] * n, {"y": s.y}),
    "input: a long shape": lambda s, n: s.builder.input("z", data_type="int8", shape=[1] * n),
    "input: a long name, twice": lambda s, n: [
        s.builder.input(letters(n), data_type="int8", shape=[1]) for _ in range(2)
    ],
    "constant: a long shape": lambda s, n: s.builder.constant(ONES, data_type="int8", shape=[2] * n),
    "constant: a long list": lambda s, n: s.builder.constant([1.0] * n),
    "build: many outputs": lambda s, n: s.builder.build({f"y{i}": s.input for i in range(n)}),
    "build: a long name": lambda s, n: s.builder.build({letters(n): s.input}),
    "an operator: a long label": lambda s, n: s.builder.softmax(s.input, 1, label=letters(n)),
    "an operator: a long option": lambda s, n: s.builder.relu(s.input, **{letters(n): 1}),
    "an operator: many options": lambda s, n: s.builder.relu(s.input, **{f"option_{i}": i for i in range(n)}),
    "an operator: many axes": lambda s, n: s.builder.reduce_sum(s.input, axes=range(n)),
    "an operator: a long enumeration": lambda s, n: s.builder.pad(s.input, [1], [1], mode=letters(n)),
    "an operator: a high integer": lambda s, n: s.builder.softmax(s.input, 10**n),
    "an operator: many numbers of the highest kind": lambda s, n: s.builder.resample2d(s.input, scales=[1e38] * n),
    "an operator: many operands": lambda s, n: s.builder.concat([s.input] * n, 1),
}


@pytest.mark.parametrize("what", METHODS)
async def test_a_method_calls_functions_in_proportion_to_its_arguments_at_most(ml, what):
    scene = await set_scene(ml, {"backend": "numpy"})
    heard = METHODS[what]

    def call(scene, count):
        outcome = heard(scene, count)
        if isinstance(outcome, MLPromise):
            outcome._mark_reported()
        return outcome

    calls_of(lambda: call(scene, 10))  # what is made once and kept
    (few, _), (many, outcome) = [calls_of(lambda n=n: call(scene, n)) for n in (COUNT, 2 * COUNT)]
    if isinstance(outcome, MLPromise):
        with pytest.raises(TypeError) as caught:
            await outcome
        outcome = caught.value
    assert isinstance(outcome, TypeError), "these arguments are to be refused"
    assert len(str(outcome)) <= LONGEST_MESSAGE, f"a message of {len(str(outcome))} characters"
    assert many <= 2 * few + SLACK, f"{few} calls for {COUNT}, {many} for twice as many"


@pytest.mark.parametrize("items", [itertools.count(), itertools.repeat(1)], ids=["numbers", "ones"])
async def test_no_more_is_read_of_an_endless_sequence_than_any_argument_may_have(numpy_context, items):
    read = 0

    def endless():
        nonlocal read
        for item in items:
            read += 1
            yield item

    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2, 3])
    for call in (
        lambda: builder.reduce_sum(x, axes=endless()),
        lambda: builder.concat(endless(), 0),
        lambda: builder.resample2d(x, scales=endless()),
        lambda: builder.input("y", data_type="int8", shape=endless()),
        lambda: builder.gru(x, x, x, 1, 1, activations=endless()),
    ):
        read = 0
        with pytest.raises(TypeError, match=f"more than {MAX_ITEMS} items; no argument takes so many"):
            call()
        assert read == MAX_ITEMS + 1
