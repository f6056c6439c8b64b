"""Ensembles of trees are onnxruntime's own operator, and compute what their decomposition computes."""

from itertools import count

import numpy as np
import pytest
from onnx import helper

pytest.importorskip("onnxruntime")

from spec_tests.onnx_models.single_node import ANY_OPSET, assert_same, make_model, node, run, run_onnxruntime
from spec_tests.support.computing import compute, compute_graph
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.onnx_models import OnnxModel, save
from webnn_py.saved_graphs import SavedGraphs

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
VALUES = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5, 1e30, 2**31], np.float32)


class Ensemble:
    """The attributes of a random ensemble of trees that compare in one way, and random rows.

    Args:
        rng: draws all of it.
        mode: how its nodes compare.
        targets: how many there are.
        is_whole: whether thresholds are small integers.
        weights: draws so many weights.
    """

    def __init__(self, rng, mode, targets, *, is_whole, weights=None):
        self._rng, self._mode, self._is_whole = rng, mode, is_whole
        nodes, leaves = [], []
        self._features = int(rng.integers(1, 4))
        for tree in range(rng.integers(1, 5)):
            self._grow(tree, count(), nodes, leaves, least=1 - tree, most=int(rng.integers(1, 6)))
        ids = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
        names = [*(f"nodes_{name}" for name in ids), "nodes_missing_value_tracks_true"]
        self.nodes = dict(zip(names, map(list, zip(*nodes, strict=True)), strict=True))
        said = [(*leaf, target) for leaf in leaves for target in range(targets)]
        names = [f"target_{name}" for name in ("treeids", "nodeids", "ids")]
        self.weights = dict(zip(names, map(list, zip(*said, strict=True)), strict=True))
        drawn = (weights or rng.normal)(size=len(said)).astype(np.float32)
        self.weights["target_weights"] = drawn.tolist()

    def _grow(self, tree, numbers, nodes, leaves, *, least, most):
        name, place = next(numbers), len(nodes)
        nodes.append((tree, name, 0, 0.0, "LEAF", 0, 0, 0))
        if most <= 0 or (least <= 0 and self._rng.random() < 0.25):
            leaves.append((tree, name))
            return name
        value = float(self._rng.integers(-2, 36)) if self._is_whole else float(np.float32(self._rng.normal()))
        yes, no = (self._grow(tree, numbers, nodes, leaves, least=least - 1, most=most - 1) for _ in range(2))
        feature = int(self._rng.integers(self._features))
        nodes[place] = (tree, name, feature, value, self._mode, yes, no, int(self._rng.integers(2)))
        return name

    def rows(self, number):
        shape = number, self._features
        rows = self._rng.integers(-2, 36, shape) if self._is_whole else self._rng.normal(size=shape)
        return np.where(self._rng.random(shape) < 0.2, self._rng.choice(VALUES, shape), rows.astype(np.float32))


async def on_both(ml, model, feeds):
    """Return the results of a model on onnxruntime and on numpy."""
    return [await run(await ml.create_context(backend=backend), model, feeds) for backend in ("onnxruntime", "numpy")]


def by_trees(seed, classes, columns, **given):
    """Return the case of a random classifier, with weights for so many classes."""
    rng = np.random.default_rng([seed, classes])
    ensemble = Ensemble(rng, MODES[seed % 4], columns, is_whole=seed % 2 == 0)
    weights = {name.replace("target", "class"): values for name, values in ensemble.weights.items()}
    lists = {**ensemble.nodes, **weights, "classlabels_int64s": rng.integers(-9, 9, classes).tolist()}
    return node("ai.onnx.ml.TreeEnsembleClassifier", 1, ensemble.rows(40), outputs=2, **lists, **given)[0]


def regression_by_trees(rng, mode, targets, *, is_whole, rows, weights=None, **given):
    ensemble = Ensemble(rng, mode, targets, is_whole=is_whole, weights=weights)
    lists = {**ensemble.nodes, **ensemble.weights}
    return node("ai.onnx.ml.TreeEnsembleRegressor", 1, ensemble.rows(rows), n_targets=targets, **lists, **given)[0]


CLASSIFIERS = [
    *(by_trees(seed, 4, 4, post_transform=item) for seed, item in enumerate(TRANSFORMS)),
    *(by_trees(seed, 2, 1, post_transform=item) for seed, item in enumerate(TRANSFORMS)),
    *(by_trees(seed, 2, 1, base_values=[0.3]) for seed in range(4)),
    by_trees(1, 3, 3, base_values=[0.3, 0.2, -0.1]),
]


async def test_the_trees_of_a_classifier_are_one_node(context, numpy_context, written_models):
    for case in CLASSIFIERS:
        found = await run(context, case.model(), case.feeds)
        assert_same(found, run_onnxruntime(case.model(), case.feeds))
        assert_same(found, await run(numpy_context, case.model(), case.feeds))
        (model,) = written_models
        written_models.clear()
        assert "TreeEnsembleRegressor" in model.operators
        assert "GatherElements" not in model.operators


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
async def test_random_trees_say_what_their_operators_say(ml, mode, seed):
    rng = np.random.default_rng([seed, len(mode)])
    function = ("SUM", "AVERAGE")[seed % 2]
    targets, is_whole = int(rng.integers(1, 4)), seed % 3 == 0
    case = regression_by_trees(rng, mode, targets, is_whole=is_whole, rows=60, aggregate_function=function)
    found, expected = await on_both(ml, case.model(), case.feeds)
    assert_same(found, expected, absolute=1e-5)
    assert_same(found, run_onnxruntime(case.model(), case.feeds), absolute=1e-5)


@pytest.mark.parametrize("function", ["SUM", "AVERAGE"])
@pytest.mark.parametrize("weights", [(np.nan, 1), (np.inf, 1), (np.inf, -np.inf), (np.nan, np.inf)])
async def test_weights_need_not_be_numbers(ml, function, weights):
    rng, choices = np.random.default_rng(7), np.array(weights, np.float32)
    case = regression_by_trees(
        rng, "BRANCH_LT", 2, is_whole=True, rows=9, aggregate_function=function,
        weights=lambda size: rng.choice(choices, size),
    )  # fmt: skip
    found, expected = await on_both(ml, case.model(), case.feeds)
    assert_same(found, expected)


async def test_two_ensembles_of_one_input_are_two(ml):
    rng = np.random.default_rng(5)
    first, second = (Ensemble(rng, "BRANCH_LEQ", 1, is_whole=False) for _ in range(2))
    rows = np.asarray(np.random.default_rng(6).normal(size=(20, 3)), np.float32)
    nodes = [
        helper.make_node(
            "TreeEnsembleRegressor", ["x"], [output], domain="ai.onnx.ml", n_targets=1, **item.nodes, **item.weights
        )
        for output, item in (("c", first), ("d", second))
    ]
    nodes += [helper.make_node("Neg", [x], [y]) for x, y in ("ca", "db")]
    model = make_model(nodes, {"x": rows}, ["a", "b"], opset=ANY_OPSET)
    found, expected = await on_both(ml, model, {"x": rows})
    assert_same(found, expected)
    assert not np.array_equal(*found)


async def test_labels_may_be_narrowed(contexts):
    for case in (by_trees(3, 4, 4), by_trees(2, 2, 1)):
        expected, _ = run_onnxruntime(case.model(), case.feeds)
        for context in contexts:
            found, _ = await run(context, OnnxModel.load(case.model(), narrow_int64=True), case.feeds)
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected)


async def test_they_are_written_down_in_operators_of_the_specification(context, tmp_path):
    for case in (by_trees(3, 4, 4), by_trees(2, 2, 1)):
        builder = MLGraphBuilder(context)
        outputs = OnnxModel.load(case.model()).convert(builder)
        save(outputs, tmp_path / "saved.onnx")
        found = await compute(context, builder, case.feeds, outputs)
        assert_same(await run(context, tmp_path / "saved.onnx", case.feeds), [*found.values()])


async def test_graphs_with_them_are_saved_and_loaded(tmp_path):
    saved = SavedGraphs(tmp_path)
    async with open_ml() as ml:
        context = await ml.create_context(backend="onnxruntime")
        case = by_trees(3, 4, 4)
        builder = MLGraphBuilder(context)
        graph = await builder.build(OnnxModel.load(case.model()).convert(builder), keep_source=True)
        await saved.save("it", graph)
        loaded = await saved.load(context, "it")
        results = [[*(await compute_graph(context, each, case.feeds)).values()] for each in (graph, loaded)]
        assert_same(*results)
