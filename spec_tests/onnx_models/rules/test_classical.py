import numpy as np
import onnx
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import Random, compared, make_model, ml, refused, run, run_onnxruntime
from webnn_py.onnx_models import OnnxModel
from webnn_py.onnx_models.rules.classical import DEEPEST

FEATURES = Random(9, -2, 2).floats(3, 4)
FEATURES[1] = 0
COUNTS = np.arange(-6, 6).reshape(3, 4)


@pytest.fixture(scope="module", params=["numpy", "onnxruntime"])
def backend(request):
    """Return a device that draws models as operators, and one that takes them whole."""
    return request.param


test_preprocessing = compared(
    ml("Scaler", FEATURES, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 2.0, 3.0, 4.0]),
    ml("Scaler", COUNTS, offset=[1.0], scale=[0.5]),
    *(ml("Normalizer", item, norm=norm) for norm in ("MAX", "L1", "L2") for item in (FEATURES, COUNTS)),
    ml("Normalizer", FEATURES[0]),
)

test_regression = compared(
    ml("LinearRegressor", FEATURES, coefficients=np.arange(8.0).tolist(), intercepts=[1.0, 2.0], targets=2),
    ml("LinearRegressor", FEATURES, coefficients=[1.0, 2.0, 3.0, 4.0]),
)

test_other_operators_of_classical_machine_learning_are_refused = refused(
    (ml("Binarizer", FEATURES, threshold=0.5), "ai.onnx.ml.Binarizer"),
    (ml("ArrayFeatureExtractor", FEATURES, np.array([2, 0])), "ai.onnx.ml.ArrayFeatureExtractor"),
    (ml("SVMRegressor", FEATURES, coefficients=[1.0], support_vectors=[1.0] * 4), "ai.onnx.ml.SVMRegressor"),
)

X = np.array([[-1.5, 0.2], [0.3, 0.1], [2, 0.4]], np.float32)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX")
THREE = {"coefficients": [1.0, 0.5, 0.0, 0.0, -0.2, 0.3], "intercepts": [0.1, 0.0, 0.2], "classlabels_ints": [4, 9, -6]}
TWO = {"coefficients": [1.0, 0.5], "intercepts": [0.1], "classlabels_ints": [5, 3]}


def classifier(x=X, *, outputs=2, **attributes):
    return ml("LinearClassifier", x, outputs=outputs, **attributes)


test_classes_are_scored_and_the_best_has_its_label = compared(
    *(classifier(**classes, post_transform=item) for classes in (THREE, TWO) for item in TRANSFORMS),
    classifier(np.array([[3, -7]]), **THREE),
    classifier(**{**THREE, "classlabels_ints": [0, 1, 2]}),
    classifier(X[0], **TWO, multi_class=1),
    ml("ZipMap", X, classlabels_int64s=[4, 9], oracle=[X]),  # a tensor, where onnxruntime has a list of dicts
)


async def test_scores_are_computed_without_labels_that_are_strings(context):
    strings = {"domain": "ai.onnx.ml", "classlabels_strings": ["no", "yes"]}
    scored = {name: TWO[name] for name in ("coefficients", "intercepts")} | {"post_transform": "LOGISTIC"}
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], **strings, **scored),
        helper.make_node("ZipMap", ["scores"], ["map"], **strings),
    ]
    written = onnx.load_model_from_string(make_model(nodes, {"x": X}, ["label", "map"], opset=18))
    score = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(onnx.TensorProto.STRING, score))
    written.graph.output[1].type.CopyFrom(maps)  # onnxruntime asks for the type of what is no tensor
    _, maps = run_onnxruntime(written.SerializeToString(), {"x": X})
    model = OnnxModel.load(written.SerializeToString())
    del written.graph.output[0]
    (ours,) = await run(context, written.SerializeToString(), {"x": X})
    np.testing.assert_allclose(ours, [[item["no"], item["yes"]] for item in maps], rtol=1e-6)
    assert set(model.outputs) == {"label", "map"}


async def test_scores_and_their_map_may_both_be_outputs(context):
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **THREE),
        helper.make_node("ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_int64s=[4, 9, -6]),
    ]
    scores, mapped = await run(context, make_model(nodes, {"x": X}, ["scores", "map"], opset=18), {"x": X})
    np.testing.assert_array_equal(scores, mapped)


STRINGS = {"coefficients": [1.0, 0.5], "intercepts": [0.1], "classlabels_strings": ["a", "b"]}


test_unsupported_classifiers_are_refused = refused(
    (classifier(**{**TWO, "intercepts": [0.1, 0.2, 0.3]}), "coefficients is 2; it must be 4, 2 times 2 features"),
    (classifier(**{**THREE, "intercepts": [0.1, 0.2]}), "intercepts is 2; it must be 3"),
    (classifier(**{**TWO, "coefficients": [1.0]}), "coefficients is 1; it must be 2, 1 times 2 features"),
    (ml("LinearRegressor", X, coefficients=[1.0], targets=-1), "coefficients is 1; it must be -2"),
    (ml("LinearRegressor", X, targets=0), "WebNN has no empty ones"),
    (classifier(**THREE, post_transform="PROBIT"), "is PROBIT; it must"),
    (classifier(**STRINGS), "its labels are strings, which WebNN lacks"),
    (ml("ZipMap", X, classlabels_int64s=[1]), "the shape of the input is [3, 2]; it must be rows of 1"),
    (ml("ZipMap", X), "the labels is none; it must be either integers or strings"),
)


# --- trees -------------------------------------------------------------------------------------------------------

ROWS = np.array([[-1.5, 0.2], [0.0, 0.1], [0.3, np.nan], [2, 0.4]], np.float32)
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


def modes(mode):
    return {**NODES, "nodes_modes": [item if item == "LEAF" else mode for item in NODES["nodes_modes"]]}


ONE = weighted("class", [0.1, 0.4, 0.3, 0.0, 0.5])
MIXED = weighted("class", [-0.3, 0.4, -0.2, -0.2, 0.5])
OF_THREE = weighted("class", [-0.3, -0.4, 0.0, 0.1, 0.2], [0.1, 0.0, -0.2, -0.1, 0.0], [0.2, 0.3, -0.5, -0.4, -0.6])
SOME_OF_THREE = weighted(
    "class", [-0.3, -0.4, None, 0.1, 0.2], [0.1, 0.0, -0.2, -0.1, None], [0.2, 0.3, -0.5, -0.4, -0.6]
)
TARGETS = weighted("target", [0.1, 0.4, 0.3, 0.2, 0.5], [1.0, 2.0, 3.0, -4.0, 5.0])
TARGET = weighted("target", [0.1, 0.4, 0.3, 0.2, 0.5])
OF_TWO = weighted("class", [0.1, 0.9, 0.3, 0.4, 0.5], [0.5, 0.4, 0.3, 0.2, 0.1])
SPARSE = weighted("target", [0.1, None, 0.3, None, 0.5], [None, 2.0, None, -4.0, 5.0])


def tree_classifier(weights, labels, nodes=NODES, x=ROWS, **attributes):
    return ml("TreeEnsembleClassifier", x, **nodes, **weights, classlabels_int64s=labels, **attributes)


def tree_regressor(weights, nodes=NODES, x=ROWS, *, targets=1, **attributes):
    return ml("TreeEnsembleRegressor", x, **nodes, **weights, n_targets=targets, **attributes)


test_rows_get_the_class_of_the_leaves_that_they_come_to = compared(
    *(tree_classifier(weights, [3, 8], **BOTH, post_transform=item) for weights in (ONE, MIXED) for item in TRANSFORMS),
    tree_classifier(ONE, [3, 8], **BOTH, base_values=[0.15]),
    *(tree_classifier(MIXED, [3, 8], **BOTH, base_values=[0.15], post_transform=item) for item in TRANSFORMS),
    *(tree_classifier(OF_THREE, [3, 8, -2], **BOTH, post_transform=item) for item in TRANSFORMS),
    tree_classifier(OF_THREE, [0, 1, 2], **BOTH, base_values=[0.2, 0.4, 0.0]),
    tree_classifier(ONE, [3, 8], x=np.array([[-1, 1], [2, 0]]), **BOTH),
)


BY_ARGMAX = {
    "two classes with weights of their own": (OF_TWO, [3, 8]),
    "leaves without weights for some classes": (SOME_OF_THREE, [3, 8, -2]),
}


@pytest.mark.parametrize("case", BY_ARGMAX)
async def test_the_label_is_that_of_the_greatest_score(context, case):
    """onnxruntime's scores are the same, and its labels are others; ONNX's reference takes the greatest."""
    weights, labels = BY_ARGMAX[case]
    (case,) = tree_classifier(weights, labels, **BOTH)
    found, scores = await run(context, case.model(), case.feeds)
    _, expected = run_onnxruntime(case.model(), case.feeds)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(found, np.array(labels)[scores.argmax(axis=1)])


test_weights_of_leaves_are_summed_over_the_trees = compared(
    tree_regressor(TARGET),
    *(tree_regressor(TARGETS, targets=2, aggregate_function=item) for item in ("SUM", "AVERAGE")),
    tree_regressor(TARGETS, targets=2, base_values=[1.0, -2.0]),
    tree_regressor(SPARSE, targets=2),
    *(tree_regressor(TARGET, modes(f"BRANCH_{item}")) for item in ("LT", "GTE", "GT")),
    tree_regressor(TARGET, nodes_missing_value_tracks_true=[0, 1, 0, 0, 0, 0, 0, 0], nodes_hitrates=[1.0] * 8),
    tree_regressor(TARGET, {name: values[5:] + values[:5] for name, values in NODES.items()}),
    tree_regressor(
        TARGET, {name: [*values[:1], *values[2:5], values[1], *values[5:]] for name, values in NODES.items()}
    ),
)


FIRST_LEAF = {name: values[:1] for name, values in TARGET.items()}

test_base_values_are_added_to_every_target = compared(
    # onnxruntime leaves out targets of which no leaf on a row's way says anything.
    tree_regressor(
        FIRST_LEAF, targets=2, base_values=[0.5, -1.5],
        oracle=[np.array([[0.6, -1.5], [0.6, -1.5], [0.5, -1.5], [0.5, -1.5]], np.float32)],
    ),
    tree_regressor(
        FIRST_LEAF, targets=2, base_values=[0.5, -1.5], aggregate_function="AVERAGE",
        oracle=[np.array([[0.55, -1.5], [0.55, -1.5], [0.5, -1.5], [0.5, -1.5]], np.float32)],
    ),
)  # fmt: skip


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


DEEP = np.array([[0.5], [7], [40.5], [159], [1000], [np.nan]], np.float32)

test_rows_come_to_one_of_many_leaves = compared(
    *(tree_regressor({}, nodes, DEEP) for nodes in (chain(8), chain(80))),
    tree_regressor({}, {**chain(8), "target_weights": [np.inf if item % 2 else -1.0 for item in range(9)]}, DEEP),
)


def changed(**attributes):
    """Return the case of the regression trees with other attributes of nodes."""
    return tree_regressor(TARGET, {**NODES, **{f"nodes_{name}": values for name, values in attributes.items()}})


NO_TREES = "the nodes are no trees of which each begins with its root"

test_malformed_trees_are_refused = refused(
    (changed(values=[0.0]), "the lengths of the attributes of nodes is [1, 8]; it must be the same, and not 0"),
    (tree_regressor(TARGET, modes("BRANCH_EQ")), "attribute nodes_modes is BRANCH_EQ; it must be LEAF, and one of"),
    (changed(modes=["BRANCH_LT", *NODES["nodes_modes"][1:]]), "nodes_modes is BRANCH_LEQ, BRANCH_LT; it must be LEAF"),
    (changed(modes=["LEAF"] * 8), "attribute nodes_modes is LEAF; it must be LEAF, and one of BRANCH_LEQ"),
    (changed(nodeids=[0, 1, 2, 3, 4, 0, 1, 1]), "the same number"),
    (changed(truenodeids=[9, 3, 0, 0, 0, 1, 0, 0]), "tree 0 has no node 9"),
    (changed(truenodeids=[2, 2, 0, 0, 0, 1, 0, 0]), NO_TREES),
    (changed(truenodeids=[2, 1, 0, 0, 0, 1, 0, 0]), NO_TREES),
    (changed(modes=["LEAF", *NODES["nodes_modes"][1:]]), NO_TREES),
    (tree_regressor(TARGET, {name: values[::-1] for name, values in NODES.items()}), NO_TREES),
    (changed(treeids=[0] * 5 + [5] * 3), "tree 1 has no node 1, to which another leads or which has a weight"),
    (tree_regressor({}, chain(DEEPEST + 1), DEEP), f"the depth of a tree is more than {DEEPEST}"),
    (
        tree_regressor({**TARGET, "target_weights": [1.0]}),
        "the lengths of the attributes of weights is [1, 5]; it must be the same",
    ),
    (tree_regressor({}), "the lengths of the attributes of weights is [0]; it must be the same, and not 0"),
    (
        tree_regressor({name: values * 2 for name, values in TARGET.items()}),
        "a leaf has several weights for one class or target",
    ),
    (tree_regressor(TARGET, base_values=[1.0, 2.0]), "the length of attribute base_values is 2; it must be 1, one for"),
    (tree_regressor(TARGETS), "an id of a class or target is 1; it must be from 0 to 0"),
    (tree_regressor(TARGET, targets=0), "an id of a class or target is 0; it must be from 0 to -1"),
    (tree_regressor(TARGET, x=ROWS[:, :1]), "a feature that a node looks at is 1; it must be from 0 to 0"),
    *(
        (
            changed(featureids=[feature, *NODES["nodes_featureids"][1:]]),
            f"a feature that a node looks at is {feature}; it must be from 0 to 1",
        )
        for feature in (2**32, -1)
    ),
    (tree_regressor({**TARGET, "target_ids": [0, 0, -1, 0, 0]}), "an id of a class or target is -1; it must be from 0"),
    (tree_classifier(ONE, [3, 8], post_transform="PROBIT"), "attribute post_transform is PROBIT; it must be NONE"),
    (tree_regressor(TARGET, post_transform="LOGISTIC"), "attribute post_transform is LOGISTIC; it must be NONE"),
    (tree_regressor(TARGET, aggregate_function="MIN"), "aggregate_function is MIN; it must be SUM"),
    (
        tree_classifier(ONE, [3, 8], **BOTH, base_values=[0.1, 0.2]),
        "base_values is 2; it must be 1, one for each score",
    ),
    (tree_classifier(ONE, [3], **BOTH), "the labels and the classes with weights is [1, 0]"),
)
