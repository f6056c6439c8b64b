"""Ensembles of decision trees are onnxruntime's own operator, and say what their decomposition says."""

from itertools import count

import numpy as np
import pytest
from onnx import helper

pytest.importorskip("onnxruntime")

from spec_tests.onnx_models.single_node import ANY_OPSET, assert_same, make_model, node, run
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5, 1e30, 2**31], np.float32)
FUNCTIONS = ["SUM", "AVERAGE", "MIN", "MAX"]
LEAST_DEPTH, DEPTH = 1, 6


class Ensemble:
    """Return the attributes of a random ensemble; nodes and their numbers stand in a random order.

    Args:
        rng: draws all of it.
        modes: how its nodes compare.
        targets: how many there are.
        is_whole: whether thresholds are small integers, of which onnxruntime makes sets.
        weights: draws so many weights.
    """

    def __init__(self, rng, modes, targets, *, is_whole, weights=None):
        self._rng, self._modes, self._is_whole = rng, modes, is_whole
        self._nodes, self._leaves = [], []
        self.features = int(rng.integers(1, 4))
        for tree in range(rng.integers(1, 5)):
            self._number = count()
            self._grow(tree, LEAST_DEPTH if tree == 0 else 0, int(rng.integers(LEAST_DEPTH, DEPTH)))
        ids = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
        names = [*(f"nodes_{name}" for name in ids), "nodes_missing_value_tracks_true"]
        shuffled = [self._nodes[place] for place in rng.permutation(len(self._nodes))]
        self.nodes = dict(zip(names, map(list, zip(*shuffled, strict=True)), strict=True))
        drawn = (weights or self._weights)(len(self._leaves) * targets)
        said = [(*leaf, target) for leaf in self._leaves for target in range(targets)]
        names = [f"target_{name}" for name in ("treeids", "nodeids", "ids")]
        self.weights = dict(zip(names, map(list, zip(*said, strict=True)), strict=True))
        self.weights["target_weights"] = [float(weight) for weight in drawn]

    def _weights(self, number):
        return (self._rng.normal(size=number) * self._rng.integers(0, 3, number)).astype(np.float32)

    def _grow(self, tree, least, levels):
        name = 1000 - next(self._number)
        if levels == 0 or (least <= 0 and self._rng.random() < 0.25):
            self._leaves.append((tree, name))
            self._nodes.append((tree, name, 0, 0.0, "LEAF", 0, 0, 0))
            return name
        threshold = float(self._rng.integers(-2, 36)) if self._is_whole else float(np.float32(self._rng.normal()))
        yes, no = (self._grow(tree, least - 1, levels - 1) for _ in range(2))
        mode, feature = str(self._rng.choice(self._modes)), int(self._rng.integers(self.features))
        self._nodes.append((tree, name, feature, threshold, mode, yes, no, int(self._rng.integers(2))))
        return name

    def rows(self, number):
        shape = number, self.features
        rows = self._rng.integers(-2, 36, shape) if self._is_whole else self._rng.normal(size=shape)
        special = self._rng.choice(SPECIAL, shape)
        return np.where(self._rng.random(shape) < 0.2, special, rows.astype(np.float32))

    def case(self, function, targets, rows=9):
        options = {"aggregate_function": function, "n_targets": targets, **self.nodes, **self.weights}
        return node("ai.onnx.ml.TreeEnsembleRegressor", 1, self.rows(rows), **options)[0]


async def on_both(ml, model, feeds):
    """Return the results of a model on onnxruntime and on numpy."""
    return [await run(await ml.create_context(backend=backend), model, feeds) for backend in ("onnxruntime", "numpy")]


async def check(ml, case, expected):
    """Check what the first output of a case is on both."""
    for found in await on_both(ml, case.model(), case.feeds):
        np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize("mode", [*MODES, "all of them"])
@pytest.mark.parametrize("seed", range(6))
async def test_random_trees_say_what_their_operators_say(ml, mode, seed):
    rng = np.random.default_rng([seed, len(mode)])
    targets, function = int(rng.integers(1, 4)), FUNCTIONS[seed % 4]
    ensemble = Ensemble(rng, MODES if mode == "all of them" else [mode], targets, is_whole=seed % 2 == 0)
    case = ensemble.case(function, targets, rows=60)
    found, expected = await on_both(ml, case.model(), case.feeds)
    assert_same(found, expected, absolute=1e-5)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("weights", [(np.nan, 1), (np.inf, 1), (np.inf, -np.inf), (np.nan, np.inf)])
async def test_weights_need_not_be_numbers(ml, function, weights):
    rng, choices = np.random.default_rng(7), np.array(weights, np.float32)
    ensemble = Ensemble(rng, MODES, 2, is_whole=True, weights=lambda number: rng.choice(choices, number))
    case = ensemble.case(function, 2)
    found, expected = await on_both(ml, case.model(), case.feeds)
    assert_same(found, expected)


OF_TWO_NUMBERS = {
    "nodes_treeids": [0] * 5,
    "nodes_nodeids": [*range(5)],
    "nodes_featureids": [0] * 5,
    "nodes_values": [1.0, 0.0, 2.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_EQ", "LEAF", "BRANCH_EQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 3, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0],
}
"""A tree that tells 1, 2 and anything else."""
ONE_TWO_OTHERS = np.array([[1], [2], [3], [np.nan]], np.float32)


@pytest.mark.parametrize("missing", [None, [0, 0, 1, 0, 0], [1, 0, 0, 0, 0], [1, 0, 1, 0, 0]], ids=str)
@pytest.mark.parametrize("weights", [([4, 4, 9],), ([0, 0, 0], [1, 5, 9]), ([0, 7, 0], [1, 5, 9])], ids=str)
async def test_equal_numbers_are_told_by_the_weights_of_all_targets(ml, weights, missing):
    targets = len(weights)
    said = {
        "target_treeids": [0] * 3 * targets,
        "target_nodeids": [1, 3, 4] * targets,
        "target_ids": [target for target in range(targets) for _ in range(3)],
        "target_weights": [float(weight) for column in weights for weight in column],
    }
    nodes = OF_TWO_NUMBERS | ({} if missing is None else {"nodes_missing_value_tracks_true": missing})
    case = node("ai.onnx.ml.TreeEnsembleRegressor", 1, ONE_TWO_OTHERS, **nodes, **said, n_targets=targets)[0]
    of_nan = 2 if missing is None else 0 if missing[0] else 1
    expected = np.array(weights, np.float32).T[[0, 1, 2, of_nan]]
    await check(ml, case, expected)


async def test_leaves_of_equal_numbers_need_no_weights(ml):
    said = {"target_treeids": [0], "target_nodeids": [1], "target_ids": [0], "target_weights": [5.0]}
    case = node("ai.onnx.ml.TreeEnsembleRegressor", 1, ONE_TWO_OTHERS, **OF_TWO_NUMBERS, **said, n_targets=1)[0]
    # onnxruntime itself would end the process.
    await check(ml, case, [[5], [0], [0], [0]])


async def test_base_values_are_added_where_leaves_are_silent(ml):
    said = {"target_treeids": [0], "target_nodeids": [1], "target_ids": [1], "target_weights": [5.0]}
    options = {**OF_TWO_NUMBERS, **said, "n_targets": 2, "base_values": [7.0, 1.0]}
    case = node("ai.onnx.ml.TreeEnsembleRegressor", 1, ONE_TWO_OTHERS, **options)[0]
    await check(ml, case, [[7, 6], [7, 1], [7, 1], [7, 1]])


async def test_two_ensembles_of_one_input_are_two(ml):
    rng = np.random.default_rng(5)
    first, second = (Ensemble(rng, ["BRANCH_LEQ"], 1, is_whole=False) for _ in range(2))
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


@pytest.mark.parametrize(("weight", "is_one"), [(1.0, True), (np.nan, False)])
async def test_trees_are_one_node_unless_the_least_may_be_nan(context, written_models, weight, is_one):
    rng = np.random.default_rng(3)
    case = Ensemble(rng, MODES, 1, is_whole=False, weights=lambda number: np.full(number, weight)).case("MIN", 1)
    builder = MLGraphBuilder(context)
    await builder.build(OnnxModel.load(case.model()).convert(builder))
    assert ("TreeEnsembleRegressor" in written_models[0].operators) is is_one
    assert (len(written_models[0].operators) == 1) is is_one
