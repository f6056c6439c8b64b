"""Steps that a graph repeats are one node with a step in it, which computes the same bits."""

from functools import partial

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_same, computed
from webnn_py import MLGraphBuilder, MLOperand
from webnn_py.drawn_graphs import drawing_of

pytest.importorskip("onnxruntime")

from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE
from webnn_py.devices.onnxruntime.passes.loop_steps import RepeatedSteps
from webnn_py.devices.rewriting.passes import passes_left_out

STEPS, UNITS = 20, 6
RNG = np.random.default_rng(3)
X = RNG.normal(size=(STEPS, 1, UNITS)).astype(np.float32)
W, R, W2, R2 = (RNG.normal(size=(UNITS, 4 * UNITS)).astype(np.float32) / 3 for _ in range(4))
OFFSETS = RNG.normal(size=(STEPS, 1, 4 * UNITS)).astype(np.float32)
STATE = np.zeros((1, UNITS), np.float32)
"""Products of constants are computed beforehand, and of others than zeros in another order."""


def gathered(b, x):
    return [b.gather(x, b.constant(step, data_type="int32"), axis=0) for step in range(STEPS)]


def split(b, x):
    return b.split(b.reshape(x, [STEPS, UNITS]), STEPS, axis=0)


def sliced(b, x):
    return [b.reshape(b.slice(x, [step, 0, 0], [1, 1, UNITS]), [1, UNITS]) for step in range(STEPS)]


def step_of(b, part, matrices, states, summand):
    """One of long short-term memory."""
    hidden, cell = states
    summed = b.add(b.add(b.matmul(part, matrices[0]), b.matmul(hidden, matrices[1])), summand)
    i, o, f, candidate = b.split(summed, 4, axis=1)
    cell = b.add(b.mul(b.sigmoid(f), cell), b.mul(b.sigmoid(i), b.tanh(candidate)))
    return b.mul(b.sigmoid(o), b.tanh(cell)), cell


def network(b, parts, *, weights=(W, R), state=STATE, summands=None, change=None, back=None, cell=None):
    """Draw steps one after the other; return all hidden states and all cells.

    Args:
        b: the builder.
        parts: what the steps read, or what draws that as the step is drawn.
        weights: of the input and the state.
        state: the first one.
        summands: what each step adds to the gates; one constant for all where there are none.
        change: makes another hidden state of that of one step.
        cell: the first one; zeros where there is none.
        back: the step behind which the next one begins with the states of the one before.
    """
    matrices = [b.constant(array) for array in weights]
    zero = b.constant(np.full((1, 4 * UNITS), 0.1, np.float32))
    hidden = state if isinstance(state, MLOperand) else b.constant(state)
    states, made = (hidden, b.constant(np.zeros(hidden.shape, np.float32)) if cell is None else cell), []
    for step, part in enumerate(parts):
        states = step_of(
            b, part() if callable(part) else part, matrices, states, zero if summands is None else summands[step]
        )
        if change is not None and step == STEPS // 2:
            states = change(b, states[0]), states[1]
        made.append(states)
        if step == back:
            states = made[-2]
    return [list(items) for items in zip(*made, strict=True)]


def joined(b, items):
    return b.concat([b.reshape(item, [1, 1, UNITS]) for item in items], 0)


def of_gathered(b, x):
    hidden, cells = network(b, gathered(b, x))
    return {"all": joined(b, hidden), "hidden": hidden[-1], "cell": b.neg(cells[-1])}


def gathered_meanwhile(b, x):
    places = [b.constant(step, data_type="int32") for step in range(STEPS)]
    return {"last": network(b, [partial(b.gather, x, place, axis=0) for place in places])[0][-1]}


def sliced_meanwhile(b, x):
    flat = b.reshape(x, [STEPS, UNITS])
    parts = [partial(b.slice, flat, [step, 0], [1, UNITS]) for step in range(STEPS)]
    return {"last": network(b, parts)[0][-1]}


def gathered_twice_as_often(b, x):
    """Each row twice: no part of the whole for each step, but indices of their own."""
    parts = [partial(b.gather, x, b.constant(step // 2, data_type="int32"), axis=0) for step in range(STEPS)]
    return {"last": network(b, parts)[0][-1]}


def of_sliced(b, x):
    return {"last": network(b, sliced(b, x))[0][-1]}


def from_a_state_that_is_computed(b, x):
    state = b.tanh(b.slice(b.reshape(x, [STEPS, UNITS]), [2, 0], [1, UNITS]))
    hidden, cells = network(b, gathered(b, x), state=state)
    return {"all": joined(b, hidden), "cell": cells[-1], "state": state}


def of_split(b, x):
    return {"all": b.concat(network(b, split(b, x))[0], 0)}


def backward(b, x):
    return {"all": joined(b, network(b, gathered(b, x)[::-1])[0][::-1])}


def backward_of_split(b, x):
    hidden, cells = network(b, split(b, x)[::-1])
    return {"all": joined(b, hidden), "cells": joined(b, cells[::-1])}


def of_own_constants(b, x):
    return {"last": network(b, gathered(b, x), summands=[b.constant(item) for item in OFFSETS])[0][-1]}


def of_what_is_computed(b, x):
    every = b.relu(b.slice(b.reshape(x, [STEPS, UNITS]), [1, 0], [1, UNITS]))
    summand = b.concat([every] * 4, 1)
    return {"last": network(b, gathered(b, x), summands=[summand] * STEPS)[0][-1], "summand": summand}


def two_in_a_row(b, x):
    between = b.reshape(b.concat(network(b, gathered(b, x))[0], 0), [STEPS, 1, UNITS])
    return {"last": network(b, gathered(b, between), weights=(W2, R2))[0][-1]}


def two_of_one_input(b, x):
    """They read the same, and multiply it by other matrices within."""
    matrices = {"one": (W, R), "other": (W2, R2)}
    last = {name: network(b, gathered(b, x), weights=weights)[0][-1] for name, weights in matrices.items()}
    return {name: b.neg(value) for name, value in last.items()}


def of_what_is_computed_twice(b, x):
    """All steps read the same value as something else."""
    every, twin = (b.relu(b.slice(b.reshape(x, [STEPS, UNITS]), [1, 0], [1, UNITS])) for _ in range(2))
    last = network(b, gathered(b, x), summands=[b.concat([every] * 4, 1)] * STEPS)[0][-1]
    return {"last": last, "first": b.concat([twin] * 4, 1), "more": b.neg(b.concat([twin] * 4, 1))}


def with_a_step_of_its_own(b, x):
    """Fewer than all steps are alike."""
    first = b.tanh(b.slice(b.reshape(x, [STEPS, UNITS]), [0, 0], [1, UNITS]))
    return {"last": network(b, [first, *gathered(b, x)[1:]], summands=[b.constant(OFFSETS[0])] * STEPS)[0][-1]}


def read_between(b, x):
    hidden, _ = network(b, gathered(b, x))
    return {"last": hidden[-1], "between": hidden[5]}


def joined_otherwise(b, x):
    hidden, _ = network(b, gathered(b, x))
    hidden[3], hidden[4] = hidden[4], hidden[3]
    return {"all": joined(b, hidden)}


def joined_side_by_side(b, x):
    twice = [b.concat([part, part], 0) for part in gathered(b, x)]
    return {"all": b.concat(network(b, twice, state=np.concatenate([STATE, STATE]))[0], 1)}


def of_one_step_that_goes_on_otherwise(b, x):
    return {"last": network(b, gathered(b, x), change=lambda b, state: b.relu(state))[0][-1]}


def of_one_step_that_begins_with_older_states(b, x):
    hidden, _ = network(b, gathered(b, x), back=STEPS // 2)
    return {"all": joined(b, hidden)}


def of_a_state_that_is_broadcast(b, x):
    twice = [b.concat([part, part], 0) for part in gathered(b, x)]
    return {"last": network(b, twice)[0][-1]}


def of_a_cell_that_is_one_number(b, x):
    return {"last": network(b, gathered(b, x), cell=b.constant(np.float32(0.5)))[0][-1]}


def of_parts_that_leave_something_out(b, x):
    """The first row of two for each step and one."""
    rows = b.reshape(x, [2 * STEPS, UNITS // 2])
    rows = b.concat([b.slice(rows, [0, 0], [1, UNITS // 2]), rows], 0)
    parts = [b.slice(rows, [2 * step + 1, 0], [2, UNITS // 2]) for step in range(STEPS)]
    return {"last": network(b, [b.reshape(part, [1, UNITS]) for part in parts])[0][-1]}


def of_nothing_but_states(b, x):
    part = b.slice(b.reshape(x, [STEPS, UNITS]), [0, 0], [1, UNITS])
    return {"last": network(b, [part] * STEPS)[0][-1]}


def of_parts_in_another_order(b, x):
    parts = split(b, x)
    parts[3], parts[4] = parts[4], parts[3]
    return {"last": network(b, parts)[0][-1]}


def of_few_steps(b, x):
    return {"last": network(b, gathered(b, x)[:7])[0][-1]}


def of_quantized_states(b, x):
    states = [b.cast(b.append(DYNAMIC_QUANTIZE, state)[0], "float32") for state in network(b, gathered(b, x))[0]]
    return {"y": joined(b, states)}


LOOPS = {
    of_gathered: 1,
    of_split: 1,
    of_sliced: 1,
    gathered_meanwhile: 1,
    sliced_meanwhile: 1,
    gathered_twice_as_often: 1,
    from_a_state_that_is_computed: 1,
    backward: 1,
    backward_of_split: 1,
    of_own_constants: 1,
    of_what_is_computed: 1,
    of_what_is_computed_twice: 1,
    two_in_a_row: 2,
    two_of_one_input: 2,
    with_a_step_of_its_own: 0,
    read_between: 0,
    joined_otherwise: 0,
    joined_side_by_side: 0,
    of_one_step_that_goes_on_otherwise: 0,
    of_one_step_that_begins_with_older_states: 0,
    of_a_state_that_is_broadcast: 0,
    of_a_cell_that_is_one_number: 0,
    of_parts_that_leave_something_out: 0,
    of_nothing_but_states: 0,
    of_parts_in_another_order: 0,
    of_few_steps: 0,
    of_quantized_states: 0,
}
"""Functions that draw graphs, and how many loops each has as one node."""


async def check(contexts, draw, x=X):
    """Check that steps in a loop give the same bits as drawn, and nearly what numpy gives."""
    rolled = await computed(contexts[0], draw, x)
    with passes_left_out("loops"):
        assert_same(rolled, await computed(contexts[0], draw, x))
    with np.errstate(all="ignore"):
        assert_same(rolled, await computed(contexts[1], draw, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("draw", LOOPS, ids=lambda draw: draw.__name__)
async def test_the_steps_of_a_loop_are_one_node(contexts, written, draw):
    await computed(contexts[0], draw, X)
    assert written["Scan"] == LOOPS[draw]
    await check(contexts, draw)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38, 1e-44], ids=str)
async def test_numbers_that_are_not_usual_go_through_a_loop_as_through_its_steps(contexts, number):
    x = X.copy()
    x[STEPS // 2, 0, 1] = number
    await check(contexts, of_gathered, x)


async def test_large_constants_of_each_step_stay_apart(contexts, written):
    def draw(b, x):
        matrix = b.constant(np.eye(2048, dtype=np.float32)[:UNITS])
        back = b.constant(np.eye(2048, dtype=np.float32)[:, :UNITS])
        state = b.constant(STATE)
        for step in range(STEPS):
            own = b.constant(np.full((1, 2048), step / STEPS, np.float32))
            part = b.gather(x, b.constant(step, data_type="int32"), axis=0)
            for _ in range(3):
                part = b.tanh(b.add(part, state))
            for _ in range(3):
                part = b.tanh(part)
            state = b.matmul(b.add(b.matmul(part, matrix), own), back)
        return {"last": state}

    await computed(contexts[0], draw, X)
    assert not written["Scan"]


@pytest.mark.parametrize("waits", [True, False])
async def test_steps_are_one_node_unless_that_would_wait_for_itself(ml, waits):
    """Where they begin with what comes of the first of them, by way of a node that is none of them."""
    context = await ml.create_context(backend="onnxruntime")
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=X.shape)
    parts = gathered(b, x)
    state = b.tanh(parts[0]) if waits else b.input("state", data_type="float32", shape=[1, UNITS])
    for part in parts:
        state = b.add(part, state)
    nodes = sorted(drawing_of("a test", {"last": state}).nodes, key=lambda node: node.drawn)
    columns = [[node for node in nodes if node.operator.name == name] for name in ("gather", "add")]
    steps = RepeatedSteps([node for step in zip(*columns, strict=True) for node in step], 2, lambda item: item.data)
    assert (steps.as_one([]) is None) == waits
