import numpy as np
import pytest

from spec_tests.onnx_models.export.exporting import operators_of
from spec_tests.onnx_models.single_node import assert_same, compared, ml, refused, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel
from webnn_py.onnx_models.rules.ml_trees import DEEPEST
from webnn_py.operators import tree_ensembles
from webnn_py.operators.tree_ensembles import MOST_PRODUCTS

X = np.array([[-1.5, 0.2], [0.0, 0.1], [0.3, np.nan], [2, 0.4]], np.float32)
BOTH = {"outputs": 2}
LEAVES = [(0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]
"""The leaves' trees and numbers."""
NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 0, 0, 0],
    "nodes_values": [0.0, 0.15, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [2, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [1, 4, 0, 0, 0, 2, 0, 0],
}
"""A tree of three leaves and one of two, by the first feature and then the second."""
ONE_TREE = {name: values[:5] for name, values in NODES.items()}
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


@pytest.fixture(scope="module", params=["numpy", "onnxruntime"])
def backend(request):
    """Return a device that draws trees as operators, and one that takes them whole."""
    return request.param


@pytest.fixture(params=[MOST_PRODUCTS, 0], ids=["at once", "a level at a time"], autouse=True)
def _most_products(request, monkeypatch):
    monkeypatch.setattr(tree_ensembles, "MOST_PRODUCTS", request.param)


def weighted(prefix, *weights):
    """Return the attributes of weights: for each class, of each leaf; None where a leaf has no weight."""
    items = [
        (*leaf, place, weight)
        for place, column in enumerate(weights)
        for leaf, weight in zip(LEAVES, column, strict=True)
        if weight is not None
    ]
    names = [f"{prefix}_{name}" for name in ("treeids", "nodeids", "ids", "weights")]
    return dict(zip(names, map(list, zip(*items, strict=True)), strict=True))


def first_leaves(weights):
    """Return the attributes of the weights of the first tree's leaves."""
    return {name: values[:3] for name, values in weights.items()}


def modes(mode, of_the_second=None):
    named = [item if item == "LEAF" else mode for item in NODES["nodes_modes"]]
    named[5] = of_the_second or mode
    return {**NODES, "nodes_modes": named}


ONE = weighted("class", [0.1, 0.4, 0.3, 0.0, 0.5])
MIXED = weighted("class", [-0.3, 0.4, -0.2, -0.2, 0.5])
THREE = weighted("class", [-0.3, -0.4, None, None, None], [None, None, -0.2, -0.1, None], [0.2, None, -0.5, -0.4, -0.6])
TARGETS = weighted("target", [0.1, 0.4, 0.3, 0.2, 0.5], [1.0, 2.0, 3.0, -4.0, 5.0])
TARGET = weighted("target", [0.1, 0.4, 0.3, 0.2, 0.5])
INCOMPLETE = weighted("target", [0.1, None, 0.3, 0.2, 0.5])
ALIKE = weighted("class", *[[0.1, 0.2, 0.3, 0.4, 0.5]] * 2)
SPARSE = weighted("target", [0.1, None, 0.3, None, 0.5], [None, 2.0, None, -4.0, 5.0])
LONE = {name: values[2:3] for name, values in NODES.items()}
LONE_LEAF = {name: values[:1] for name, values in TARGET.items()}
"""A tree that is a leaf."""


def classifier(x, weights, labels, nodes=NODES, **attributes):
    return ml("TreeEnsembleClassifier", x, **nodes, **weights, classlabels_int64s=labels, **attributes)


def regressor(x, weights, nodes=NODES, *, targets=1, **attributes):
    return ml("TreeEnsembleRegressor", x, **nodes, **weights, n_targets=targets, **attributes)


test_rows_get_the_class_of_the_leaves_that_they_come_to = compared(
    *(classifier(X, weights, [3, 8], **BOTH, post_transform=item) for weights in (ONE, MIXED) for item in TRANSFORMS),
    classifier(X, ONE, [3, 8], **BOTH, base_values=[0.15]),
    classifier(X, ONE, [3, 8], **BOTH, base_values=[0.15], post_transform="LOGISTIC"),
    *(classifier(X, MIXED, [3, 8], **BOTH, base_values=[0.15], post_transform=item) for item in TRANSFORMS),
    classifier(X, MIXED, [3, 8], **BOTH, base_values=[0.0]),
    *(classifier(X, THREE, [3, 8, -2], **BOTH, post_transform=item) for item in TRANSFORMS),
    classifier(X, THREE, [3, 8, -2], **BOTH, base_values=[0.2, 0.4, 0.0]),
    classifier(X, ALIKE, [3, 8], outputs=2, wanted=(1,)),
    classifier(np.array([[-1, 1], [2, 0]]), ONE, [3, 8], **BOTH),
)


test_weights_of_leaves_are_summed_over_the_trees = compared(
    *(regressor(X, TARGETS, targets=2, aggregate_function=item) for item in ("SUM", "AVERAGE", "MIN", "MAX")),
    regressor(X, TARGETS, targets=2, base_values=[1.0, -2.0], post_transform="SOFTMAX"),
    regressor(X, TARGET),
    *(regressor(X, SPARSE, targets=2, aggregate_function=item, base_values=[0.5, 0.0]) for item in ("SUM", "AVERAGE")),
    regressor(X, LONE_LEAF, LONE),
    regressor(
        X,
        weighted("target", [0.1, 0.4, 0.3, None, 0.7]),
        {name: values[-1:] + values[:5] for name, values in NODES.items()},
    ),
    regressor(X, first_leaves(TARGET), ONE_TREE),
    regressor(X, first_leaves(TARGET), {**ONE_TREE, "nodes_modes": ["BRANCH_GT", *ONE_TREE["nodes_modes"][1:]]}),
    *(regressor(X, TARGET, modes(f"BRANCH_{item}")) for item in ("LT", "GTE", "GT", "EQ", "NEQ")),
    regressor(X, TARGET, modes("BRANCH_GT", "BRANCH_LEQ")),
    regressor(X, TARGET, nodes_missing_value_tracks_true=[0, 1, 0, 0, 0, 0, 0, 0], nodes_hitrates=[1.0] * 8),
)


BASED = [np.array([[0.6, -1.5]] * 2, np.float32)]
"""The results of ONNX's reference; onnxruntime leaves out targets of which no leaf says anything."""

test_base_values_are_added_to_every_target = compared(
    *(
        regressor(
            X[:2], first_leaves(TARGET), ONE_TREE, targets=2, base_values=[0.5, -1.5], aggregate_function=item,
            oracle=BASED,
        )
        for item in ("SUM", "AVERAGE")
    ),
)  # fmt: skip


async def test_nodes_stand_in_any_order(context, ml):
    turned = {name: values[::-1] for name, values in NODES.items()}  # onnxruntime takes the first for the root
    found = await run(context, regressor(X, TARGET, turned)[0].model(), {"x0": X})
    case = regressor(X, TARGET)[0]
    assert_same(found, run_onnxruntime(case.model(), case.feeds))


async def test_trees_without_features_have_no_input(context):
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(regressor(X, LONE_LEAF, LONE)[0].model()).convert(builder))
    assert not graph.input_descriptors


def operators(context, cases):
    """Return the number of operators that the first case becomes."""
    model, builder = OnnxModel.load(cases[0].model()), MLGraphBuilder(context)
    return len(operators_of(model.convert(builder)))


def chain(levels):
    """Return a tree with a leaf at each of its levels."""
    count = 2 * levels + 1
    branches = range(0, count - 1, 2)
    leaves = [item for item in range(count) if item not in branches]
    return {
        "nodes_treeids": [0] * count,
        "nodes_nodeids": list(range(count)),
        "nodes_featureids": [0] * count,
        "nodes_values": [float(item) for item in range(count)],
        "nodes_modes": ["BRANCH_LEQ" if item in branches else "LEAF" for item in range(count)],
        "nodes_truenodeids": [item + 1 if item in branches else 0 for item in range(count)],
        "nodes_falsenodeids": [item + 2 if item in branches else 0 for item in range(count)],
        "target_treeids": [0] * len(leaves),
        "target_nodeids": leaves,
        "target_ids": [0] * len(leaves),
        "target_weights": [item / 4 for item in leaves],
    }


ROWS = np.array([[0.5], [7], [40.5], [159], [1000], [np.nan]], np.float32)


INFINITE = {**chain(8), "target_weights": [np.inf if item % 2 else -1.0 for item in range(9)]}

test_rows_come_to_one_of_many_leaves = compared(
    *(regressor(ROWS, {}, nodes) for nodes in (*map(chain, (8, 63, 64, 80)), INFINITE))
)


async def test_trees_up_to_so_many_pairs_are_found_at_once(context, monkeypatch):
    def count(levels):
        return operators(context, regressor(ROWS, {}, chain(levels)))

    monkeypatch.setattr(tree_ensembles, "MOST_PRODUCTS", len(ROWS) * 64 * 63)
    assert count(63) < 20 < count(64)
    monkeypatch.setattr(tree_ensembles, "MOST_PRODUCTS", len(ROWS) * 64 * 63 - 1)
    assert count(63) > 20


async def test_trees_are_filled_up_to_the_largest(context, monkeypatch):
    monkeypatch.setattr(tree_ensembles, "MOST_PRODUCTS", len(X) * 2 * 2 * 3)
    at_once = operators(context, regressor(X, TARGET))
    monkeypatch.setattr(tree_ensembles, "MOST_PRODUCTS", len(X) * 2 * 2 * 3 - 1)
    assert operators(context, regressor(X, TARGET)) > at_once


def changed(**attributes):
    """Return the case of the regression trees with other attributes of nodes."""
    return regressor(X, TARGET, {**NODES, **{f"nodes_{name}": values for name, values in attributes.items()}})


NO_TREES = "the nodes are no trees: more than one leads to a node"
LACKS_WEIGHTS = "its leaves do not all have a weight for each target; for MIN they must"


test_malformed_trees_are_refused = refused(
    (changed(values=[0.0]), "the lengths of the attributes of nodes is [1, 8]"),
    (regressor(X, TARGET, modes("BRANCH_IN")), "attribute nodes_modes is BRANCH_IN; it must be BRANCH_LEQ"),
    (changed(nodeids=[0, 1, 2, 3, 4, 0, 1, 1]), "the same number"),
    (changed(truenodeids=[9, 3, 0, 0, 0, 1, 0, 0]), "tree 0 has no node 9"),
    (changed(truenodeids=[2, 2, 0, 0, 0, 1, 0, 0]), NO_TREES),
    (changed(truenodeids=[2, 1, 0, 0, 0, 1, 0, 0]), NO_TREES),
    (changed(treeids=[0] * 5 + [5] * 3), "tree 1 has no node 1, which has a weight"),
    (changed(modes=["LEAF", *NODES["nodes_modes"][1:]]), "the number of roots is 4; it must be 2, one for each tree"),
    (regressor(X, {}, chain(DEEPEST + 1)), f"the depth of a tree is more than {DEEPEST}"),
    (
        regressor(X, {**TARGET, "target_weights": [1.0]}),
        "the lengths of the attributes of weights is [5, 5, 5, 1]; it must be the same",
    ),
    (regressor(X, TARGET, base_values=[1.0, 2.0]), "the length of attribute base_values is 2; it must be 1, one for"),
    (regressor(X, TARGETS), "an id of a class or target is 1; it must be from 0 to 0"),
    (regressor(X[:, :1], TARGET), "a feature that a node looks at is 1; it must be from 0 to 0"),
    *(
        (
            changed(featureids=[feature, *NODES["nodes_featureids"][1:]]),
            f"a feature that a node looks at is {feature}; it must be from 0 to 1",
        )
        for feature in (2**32, -1)
    ),
    (regressor(X, {**TARGET, "target_ids": [0, 0, -1, 0, 0]}), "an id of a class or target is -1; it must be from 0"),
    (classifier(X, ONE, [3, 8], post_transform="PROBIT"), "attribute post_transform is PROBIT; it must be NONE"),
    (regressor(X, TARGET, post_transform="LOGISTIC"), "is [1, 'LOGISTIC']; it must be NONE"),
    (regressor(X, TARGET, aggregate_function="MEDIAN"), "aggregate_function is MEDIAN; it must be SUM"),
    (regressor(X, INCOMPLETE, aggregate_function="MIN"), LACKS_WEIGHTS),
    (
        regressor(X, {name: values * 2 for name, values in TARGET.items()}),
        "a leaf has several weights for the one target",
    ),
    (classifier(X, ONE, [3, 8], **BOTH, base_values=[0.1, 0.2]), "base_values is 2; it must be that of the scores"),
    (classifier(X, ONE, [3], **BOTH), "the labels and the classes with weights is [1, 0]"),
    (classifier(X, ALIKE, [3, 8], **BOTH), "onnxruntime's label is not that of the greater"),
)
