"""Inputs on which shapes depend stand in the model, however long; all other constants may lie outside of it."""

import attrs
import numpy as np
import pytest

import webnn_py
from spec_tests.on_onnxruntime.both import assert_both
from spec_tests.operators.cases import load_all
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Computed
from spec_tests.support.computing import run_graph
from webnn_py import MLGraphBuilder
from webnn_py.saved_graphs import SavedGraphs

pytest.importorskip("onnxruntime")

from webnn_py.onnx_export import inlined_export
from webnn_py.testing.device_cases.graphs import as_constant

MOST_CASES = 12
MANY = 600
"""Parts whose sizes take more than ``LEAST_BESIDE`` bytes."""
RNG = np.random.default_rng(34)
X = RNG.standard_normal((MANY, 2, 3), np.float32)
WEIGHTS, RECURRENT = (0.3 * RNG.standard_normal((rows, 4), np.float32) for rows in (3, 4))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", [pytest.param(file, id=file.operator) for file in load_all()])
@pytest.mark.parametrize("drawer", [None, as_constant], ids=["as written", "of constants"])
def test_models_with_all_other_constants_outside_compute_the_same(file, drawer, monkeypatch):
    monkeypatch.setattr(inlined_export, "LEAST_BESIDE", 1)
    listed = [case for case in file.cases if ("onnxruntime", file.operator, case.name) not in EXCEPTIONS]
    some = listed[:: -(-len(listed) // MOST_CASES)]
    computed = Computed.of("onnxruntime", attrs.evolve(file, cases=tuple(some)), drawer)
    wrong = {case.name: words for case in some if (words := computed.what_is_wrong(case))}
    assert not wrong, wrong


def split(b, x):
    return b.concat(b.split(x, MANY, axis=0)[::-1], axis=0)


def split_by_sizes(b, x):
    parts = b.split(b.concat([x, x], axis=0), [1, 3] * (MANY // 2), axis=0)
    return b.concat(parts[::-1], axis=0)


def split_by_a_constant(b, x):
    """The sizes are equal to a constant that another operator reads."""
    ones = b.reshape(b.cast(b.constant(np.ones(MANY, np.int64)), "float32"), [MANY, 1, 1])
    return b.add(split(b, x), ones)


def slices(b, x):
    return b.concat([b.slice(x, [row, 0, 0], [1, 2, 3]) for row in range(MANY)][::-1], axis=0)


def network(part_of):
    """Draw a recurrent network step by step."""

    def draw(b, x):
        parts, states = part_of(b, x), [b.constant(np.zeros((2, 4), np.float32))]
        for part in parts:
            product = b.matmul(b.reshape(part, [2, 3]), b.constant(WEIGHTS))
            states.append(b.tanh(b.add(product, b.matmul(states[-1], b.constant(RECURRENT)))))
        return b.concat(states, axis=0)

    return draw


DRAWINGS = {
    "split": split,
    "split by sizes": split_by_sizes,
    "split by what is a constant, too": split_by_a_constant,
    "slices": slices,
    "a network of slices": network(lambda b, x: [b.slice(x, [step, 0, 0], [1, 2, 3]) for step in range(MANY)]),
    "a network of a split": network(lambda b, x: b.split(x, MANY, axis=0)),
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
async def test_there_may_be_more_parts_than_a_short_constant_has_sizes(contexts, draw):
    await assert_both(contexts, draw, X, rtol=1e-5, atol=1e-6)


async def test_a_saved_graph_of_many_parts_is_run_again(tmp_path):
    saved = SavedGraphs(tmp_path)
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="onnxruntime", threads=1)
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=X.shape)
        await saved.save("many", await builder.build({"y": split(builder, x)}, keep_source=True))
        other = await ml.create_context(backend="onnxruntime", threads=1)
        results = await run_graph(other, await saved.load(other, "many"), {"x": X})
        np.testing.assert_array_equal(results["y"], X[::-1])
