"""Linear models, normalizations and classifiers by trees are onnxruntime's own operators."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from spec_tests.on_onnxruntime.test_idle_optimizers import optimized
from spec_tests.on_onnxruntime.test_trees import MODES, ONE_TWO_OTHERS, Ensemble, on_both
from spec_tests.onnx_models.single_node import assert_same, node, run, run_onnxruntime
from spec_tests.support.computing import compute, compute_graph
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.device.on_onnxruntime.engine import DISABLED
from webnn_py.device.on_onnxruntime.idle_optimizers import CHANGED_BY_NONE
from webnn_py.onnx_models import OnnxModel, save

SPECIAL = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, 1], [1e30, 1e30], [3e38, 3e38], [0, 0], [-100, 2]], np.float32)
THREE = {"coefficients": [1.0, 0.5, 0.0, 0.0, -0.2, 0.3], "intercepts": [0.1, 0.0, 0.2]}
TWO = {"coefficients": [1.0, 0.5], "intercepts": [0.1]}
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def linear(labels, *, x=SPECIAL, **given):
    return node("ai.onnx.ml.LinearClassifier", 1, x, outputs=2, classlabels_ints=labels, **given)[0]


def regressor(**given):
    return node("ai.onnx.ml.LinearRegressor", 1, SPECIAL, targets=2, coefficients=THREE["coefficients"][:4], **given)[0]


def by_trees(seed, classes, columns, modes=MODES, **given):
    """Return the case of a random classifier, with weights for so many classes."""
    rng = np.random.default_rng([seed, classes])
    ensemble = Ensemble(rng, modes, columns, is_whole=seed % 2 == 0)
    weights = {name.replace("target", "class"): values for name, values in ensemble.weights.items()}
    if columns > 1:  # some leaves have no weight for some classes
        kept = np.flatnonzero(rng.random(len(weights["class_ids"])) < 0.8)
        weights = {name: [values[place] for place in kept] for name, values in weights.items()}
    lists = {**ensemble.nodes, **weights, "classlabels_int64s": rng.integers(-9, 9, classes).tolist()}
    return node("ai.onnx.ml.TreeEnsembleClassifier", 1, ensemble.rows(40), outputs=2, **lists, **given)[0]


NORMALIZED = node("ai.onnx.ml.Normalizer", 1, SPECIAL, norm="L1")[0]
WHOLE = [
    *(linear(labels, **given, post_transform=item)
      for labels, given in (([4, 9, -6], THREE), ([5, -3], TWO)) for item in TRANSFORMS),
    regressor(),
    regressor(intercepts=[1.0, 2.0]),
    NORMALIZED,
    *(by_trees(seed, 4, 4, post_transform=item) for seed, item in enumerate(TRANSFORMS)),
    *(by_trees(seed, 2, 1, post_transform=item) for seed, item in enumerate(TRANSFORMS)),
    *(by_trees(seed, 2, 1, base_values=[0.3]) for seed in range(4)),
    by_trees(1, 3, 3, base_values=[0.3, 0.2, -0.1]),
]  # fmt: skip


async def test_they_are_one_node_that_no_optimizer_changes(contexts, written_models, tmp_path):
    context, others = contexts
    for case in WHOLE:
        found = await run(context, case.model(), case.feeds)
        if "Tree" in case.operator:  # onnxruntime itself takes the nodes in one order only
            expected = await run(others, case.model(), case.feeds)
        else:
            expected = run_onnxruntime(case.model(), case.feeds)
        assert_same(found, expected)
        (model,) = written_models
        written_models.clear()
        assert model.operators == {case.operator.rpartition(".")[2]} <= CHANGED_BY_NONE
        (counts, _) = optimized(model, {*DISABLED}, tmp_path / "optimized.onnx")
        assert sum(counts.values()) == 1


async def test_normalizers_whose_norm_ignores_nan_or_overflows_are_decomposed(ml, written_models):
    for norm in ("MAX", "L2"):
        case = node("ai.onnx.ml.Normalizer", 1, SPECIAL, norm=norm)[0]
        found, expected = await on_both(ml, case.model(), case.feeds)
        assert_same(found, expected)
    assert all("Normalizer" not in model.operators for model in written_models)


async def test_weights_that_cancel_do_not_turn_scores_into_probabilities(ml, written_models):
    nodes = {
        "nodes_treeids": [0] * 3,
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0] * 3,
        "nodes_values": [1.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
    }
    weights = {"class_treeids": [0] * 3, "class_nodeids": [1, 2, 2], "class_ids": [0] * 3}
    for second, is_whole in ((-0.125, False), (0.125, True)):
        given = {**nodes, **weights, "class_weights": [0.25, 0.5, second], "classlabels_int64s": [3, 8]}
        case = node("ai.onnx.ml.TreeEnsembleClassifier", 1, ONE_TWO_OTHERS, outputs=2, **given)[0]
        for found in await on_both(ml, case.model(), case.feeds):
            assert_same(found, run_onnxruntime(case.model(), case.feeds))
        assert ("TreeEnsembleClassifier" in written_models.pop().operators) is is_whole


@pytest.mark.parametrize("labels", [[0, 1, 2], [4, 9, -6]])
async def test_labels_may_be_narrowed(contexts, labels):
    case = linear(labels, x=np.array([[-1.5, 0.2], [2, 0.4]], np.float32), **THREE)
    expected, _ = run_onnxruntime(case.model(), case.feeds)
    for context in contexts:
        found, _ = await run(context, OnnxModel.load(case.model(), narrow_int64=True), case.feeds)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)


async def test_they_are_written_down_in_operators_of_the_specification(context, tmp_path):
    for case in (linear([4, 9, -6], **THREE), by_trees(3, 4, 4), by_trees(2, 2, 1), NORMALIZED):
        builder = MLGraphBuilder(context)
        outputs = OnnxModel.load(case.model()).convert(builder)
        save(outputs, tmp_path / "saved.onnx")
        if case.operator != "ai.onnx.ml.LinearClassifier":  # whose decomposition gives NaN the label
            found = await compute(context, builder, case.feeds, outputs)
            assert_same(await run(context, tmp_path / "saved.onnx", case.feeds), [*found.values()])


async def test_graphs_with_them_are_saved_and_loaded(tmp_path):
    async with open_ml(graph_cache=tmp_path) as ml:
        context = await ml.create_context(backend="onnxruntime")
        for case in (linear([4, 9, -6], **THREE), by_trees(3, 4, 4), NORMALIZED):
            builder = MLGraphBuilder(context)
            graph = await builder.build(OnnxModel.load(case.model()).convert(builder))
            await context.save_graph("it", graph)
            loaded = await context.load_graph("it")
            results = [[*(await compute_graph(context, each, case.feeds)).values()] for each in (graph, loaded)]
            assert_same(*results)
