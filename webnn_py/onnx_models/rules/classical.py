"""Linear models and ensembles of decision trees as skl2onnx writes them, with what stands around them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.devices.composites.classical import LINEAR_MODEL, TREE_ENSEMBLE, Transform
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.rule_table.declaration import rule

DEEPEST: Final = 256
"""The most levels of a tree; each costs a dozen operators."""

COMPARISONS: Final[Mapping[str, str]] = {
    "BRANCH_LEQ": "lesser_or_equal",
    "BRANCH_LT": "lesser",
    "BRANCH_GTE": "greater_or_equal",
    "BRANCH_GT": "greater",
}


@rule("ai.onnx.ml.Scaler", 1)
def scale(
    context: ConversionContext,
    x: MLOperand,
    *,
    offset: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
) -> MLOperand:
    """Return (x - offset) · scale, for each feature along the last axis, or the same for all."""
    features = x.shape[-1] if x.rank else 1
    given = {"offset": offset or (0.0,), "scale": scale or (1.0,)}
    for name, values in given.items():
        if len(values) not in (1, features):
            refuse(f"the length of attribute {name}", len(values), f"1 or {features}, as the input {list(x.shape)} has")
    subtracted, factor = (context.constant(np.array(values, np.float32)) for values in given.values())
    scaled = context.mul(context.sub(context.cast(x, "float32"), subtracted), factor)
    return scaled if x.rank else context.reshape(scaled, [])


@rule("ai.onnx.ml.Normalizer", 1)
def normalize(context: ConversionContext, x: MLOperand, *, norm: Literal["MAX", "L1", "L2"] = "MAX") -> MLOperand:
    """Divide rows by their greatest element or by their norm; rows of zeros stay, as in onnxruntime."""
    if not 1 <= x.rank <= 2:
        refuse("the rank of the input", x.rank, "1 or 2")
    floats = context.cast(x, "float32")
    norms = {"MAX": context.reduce_max, "L1": context.reduce_l1, "L2": context.reduce_l2}
    divisor = norms[norm](floats, axes=[x.rank - 1], keep_dimensions=True)
    is_zero = context.equal(divisor, context.number(0, divisor))
    return context.div(floats, context.where(is_zero, context.number(1, divisor), divisor))


@rule("ai.onnx.ml.ZipMap", 1)
def zip_map(
    context: ConversionContext,
    x: MLOperand,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> MLOperand:
    """Return the scores: a column for each label, in order, where ONNX makes a map of each row."""
    count = _number_of_labels(classlabels_int64s, classlabels_strings)
    if not x.rank or x.shape[-1] != count:
        refuse("the shape of the input", list(x.shape), f"rows of {count}, one for each label")
    return x


def _rows(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return an input as rows of features in float32; one dimension is one row."""
    if not 1 <= x.rank <= 2:
        refuse("the rank of the input", x.rank, "1 or 2")
    floats = context.cast(x, "float32")
    return context.reshape(floats, [1, *x.shape]) if x.rank == 1 else floats


def _number_of_labels(ints: Sequence[int] | None, strings: Sequence[str] | None) -> int:
    if (ints and strings) or not (ints or strings):
        refuse("the labels", "two kinds" if ints else "none", "either integers or strings")
    return len(ints or strings or ())


def _labels(context: ConversionContext, count: int, ints: Sequence[int] | None) -> NDArray[np.integer[Any]]:
    """Return the labels of the classes; stand-ins where the output of labels is not wanted.

    Raises:
        Refused: it is wanted, and the labels are strings.
    """
    if not context.wanted[0]:
        return np.arange(count, dtype=np.int32)
    if not ints:
        raise RefusedWithWayOut(
            "its labels are strings, which WebNN lacks",
            "leave the output of labels out, by outputs; the scores have a column for each",
        )
    return np.array(ints, np.int64)


# --- linear models -------------------------------------------------------------------------------------------


@rule("ai.onnx.ml.LinearRegressor", 1)
def linear_regressor(
    context: ConversionContext,
    x: MLOperand,
    *,
    coefficients: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    post_transform: Literal["NONE"] = "NONE",
    targets: int = 1,
) -> MLOperand:
    """Return a product with the coefficients of each target, and its intercept."""
    rows, weights = _rows(context, x), np.array(coefficients or (), np.float32)
    features = rows.shape[1]
    if targets < 1 or weights.size != targets * features:
        refuse("the length of attribute coefficients", weights.size, f"{targets} · {features}, one for each feature")
    operands: dict[str, Value] = {"input": rows, "coefficients": weights.reshape(targets, features)}
    if intercepts:
        if len(intercepts) != targets:
            refuse("the length of attribute intercepts", len(intercepts), f"{targets}, one for each target")
        operands["intercepts"] = np.array(intercepts, np.float32)
    return context.composite(LINEAR_MODEL, operands, post_transform=post_transform)[0]


@rule("ai.onnx.ml.LinearClassifier", 1)
def linear_classifier(
    context: ConversionContext,
    x: MLOperand,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: Transform = "NONE",
) -> tuple[MLOperand, MLOperand]:
    """Multiply by the coefficients of each class, and add its intercept; the first of two classes may be absent."""
    count = _number_of_labels(classlabels_ints, classlabels_strings)
    if count == 1:
        refuse("the number of labels", 1, "2 or more")
    rows, weights, added = _rows(context, x), np.array(coefficients or (), np.float32), tuple(intercepts or ())
    features = rows.shape[1]
    if len(added) != count and (len(added), count) != (1, 2):
        refuse("the length of attribute intercepts", len(added), f"{count}, one for each label, or 1 for two")
    needed = len(added) * features
    if weights.size < needed:
        refuse("the length of attribute coefficients", weights.size, f"{len(added)} · {features}, one for each feature")
    operands: dict[str, Value] = {
        "input": rows,
        "coefficients": weights[:needed].reshape(len(added), features),  # onnxruntime passes over what is left
        "intercepts": np.array(added, np.float32),
        "labels": _labels(context, count, classlabels_ints),
    }
    scores, labels = context.composite(LINEAR_MODEL, operands, post_transform=post_transform)
    return labels, scores


# --- trees ---------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class NodeAttributes:
    """Attributes of the nodes of trees: for each node, one element of each."""

    nodes_falsenodeids: Sequence[int] = ()
    nodes_featureids: Sequence[int] = ()
    nodes_hitrates: Sequence[float] = ()
    nodes_missing_value_tracks_true: Sequence[int] = ()
    nodes_modes: Sequence[str] = ()
    nodes_nodeids: Sequence[int] = ()
    nodes_treeids: Sequence[int] = ()
    nodes_truenodeids: Sequence[int] = ()
    nodes_values: Sequence[float] = ()


def _trees(nodes: NodeAttributes, features: int) -> tuple[dict[str, Value], dict[str, Any], dict[tuple[int, int], int]]:
    """Return the nodes of trees as operands and options of the composite, and their indices by tree and number.

    Raises:
        Refused: they are no trees, or compare in several ways, or what rows do not have.
    """
    count, missing = len(nodes.nodes_nodeids), nodes.nodes_missing_value_tracks_true
    children_of = nodes.nodes_falsenodeids, nodes.nodes_truenodeids
    lists = (nodes.nodes_treeids, nodes.nodes_featureids, nodes.nodes_values, nodes.nodes_modes, *children_of)
    lengths = {*map(len, lists), len(missing) or count}
    if lengths != {count} or not count:
        refuse("the lengths of the attributes of nodes", sorted({*lengths, count}), "the same, and not 0")
    modes = {*nodes.nodes_modes} - {"LEAF"}
    if len(modes) != 1 or not modes <= COMPARISONS.keys():
        refuse(
            "attribute nodes_modes", ", ".join(sorted(modes)) or "LEAF", f"LEAF, and one of {', '.join(COMPARISONS)}"
        )
    order = np.argsort(nodes.nodes_treeids, kind="stable")
    keys = [(nodes.nodes_treeids[item], nodes.nodes_nodeids[item]) for item in order]
    index = {key: place for place, key in enumerate(keys)}
    if len(index) != count:
        raise Refused("two nodes of a tree have the same number")
    table = np.zeros([count, 5], np.int32)
    table[:, 0] = np.unique([tree for tree, _ in keys], return_inverse=True)[1]
    table[:, 2:4] = np.arange(count)[:, None]
    for place, item in enumerate(order):
        if nodes.nodes_modes[item] == "LEAF":
            continue
        feature, tree = nodes.nodes_featureids[item], keys[place][0]
        if not 0 <= feature < features:
            refuse("a feature that a node looks at", feature, f"from 0 to {features - 1}")
        try:
            table[place, 2:4] = [index[tree, ids[item]] for ids in children_of]
        except KeyError as error:
            raise Refused(f"tree {tree} has no node {error.args[0][1]}, to which another leads") from error
        table[place, 1], table[place, 4] = feature, bool(missing and missing[item])
    operands: dict[str, Value] = {"nodes": table, "thresholds": np.array(nodes.nodes_values, np.float32)[order]}
    return operands, {"depth": _depth(table), "comparison": COMPARISONS[modes.pop()]}, index


def _depth(table: NDArray[np.int32]) -> int:
    """Return how many levels of comparisons trees have.

    Raises:
        Refused: two nodes lead to the same, a tree does not begin with its root, or there are too many levels.
    """
    is_branch = table[:, 2] != np.arange(len(table))
    led_to = np.bincount(table[is_branch, 2:4].ravel(), minlength=len(table))
    is_first = np.diff(table[:, 0], prepend=-1) != 0
    if (led_to != np.where(is_first, 0, 1)).any():
        raise Refused("the nodes are no trees of which each begins with its root: to any other node one node must lead")
    level, depth = is_first.nonzero()[0], 0
    while len(branches := level[is_branch[level]]):
        level, depth = table[branches, 2:4].ravel(), depth + 1
        if depth > DEEPEST:
            refuse("the depth of a tree", f"more than {DEEPEST}", f"at most {DEEPEST}")
    return depth


def _weights(
    context: ConversionContext,
    index: Mapping[tuple[int, int], int],
    keys: Sequence[tuple[int, int]],
    ids: Sequence[int],
    weights: Sequence[float],
    count: int,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the weights of each node for each class or target, zeros where it has none; and whether it has one.

    Raises:
        Refused: they speak of what is not there, or several of the same.
    """
    if not len(keys) == len(ids) == len(weights):
        refuse("the lengths of the attributes of weights", [len(keys), len(ids), len(weights)], "the same")
    if ids and not 0 <= min(ids) <= max(ids) < count:
        wrong = min(ids) if min(ids) < 0 else max(ids)
        refuse("an id of a class or target", wrong, f"from 0 to {count - 1}")
    if absent := {*keys} - index.keys():
        tree, node = min(absent)
        raise Refused(f"tree {tree} has no node {node}, which has a weight")
    if len({*zip(keys, ids, strict=True)}) != len(ids):
        raise Refused("a leaf has several weights for one class or target")
    context.reserve(len(index) * count * 4)
    table, has_weight = np.zeros([len(index), count], np.float32), np.zeros([len(index), count], np.bool_)
    places = [index[key] for key in keys], list(ids)
    table[places], has_weight[places] = np.array(weights, np.float32), True
    return table, has_weight


@rule("ai.onnx.ml.TreeEnsembleRegressor", 1)
def tree_regressor(
    context: ConversionContext,
    x: MLOperand,
    *,
    aggregate_function: Literal["SUM", "AVERAGE"] = "SUM",
    base_values: Sequence[float] | None = None,
    n_targets: int = 1,
    nodes: NodeAttributes,
    post_transform: Literal["NONE"] = "NONE",
    target_ids: Sequence[int] = (),
    target_nodeids: Sequence[int] = (),
    target_treeids: Sequence[int] = (),
    target_weights: Sequence[float] = (),
) -> MLOperand:
    """Return the sum of the leaves' weights over the trees, or their mean."""
    if n_targets < 1:
        refuse("attribute n_targets", n_targets, "1 or more")
    if base_values and len(base_values) != n_targets:
        refuse("the length of attribute base_values", len(base_values), f"{n_targets}, one for each target")
    rows = _rows(context, x)
    operands, options, index = _trees(nodes, rows.shape[1])
    keys = list(zip(target_treeids, target_nodeids, strict=False))
    operands |= {"input": rows, "weights": _weights(context, index, keys, target_ids, target_weights, n_targets)[0]}
    if base_values:
        operands["base"] = np.array(base_values, np.float32)
    options |= {"function": "sum" if aggregate_function == "SUM" else "mean", "post_transform": post_transform}
    return context.composite(TREE_ENSEMBLE, operands, **options)[0]


@rule("ai.onnx.ml.TreeEnsembleClassifier", 1)
def tree_classifier(
    context: ConversionContext,
    x: MLOperand,
    *,
    base_values: Sequence[float] | None = None,
    class_ids: Sequence[int] = (),
    class_nodeids: Sequence[int] = (),
    class_treeids: Sequence[int] = (),
    class_weights: Sequence[float] = (),
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    nodes: NodeAttributes,
    post_transform: Transform = "NONE",
) -> tuple[MLOperand, MLOperand]:
    """Return the sum of the leaves' weights for each class over the trees, and the best class."""
    count = _number_of_labels(classlabels_int64s, classlabels_strings)
    is_binary = count == 2 and {*class_ids} == {0}
    if count == 1 or (count == 2 and {*class_ids} == {1}):
        refuse(
            "the labels and the classes with weights", [count, *{*class_ids}], "two labels with weights of 0, or more"
        )
    columns = 1 if is_binary else count
    if base_values and len(base_values) != columns:
        refuse("the length of attribute base_values", len(base_values), f"{columns}, one for each score")
    rows = _rows(context, x)
    operands, options, index = _trees(nodes, rows.shape[1])
    keys = list(zip(class_treeids, class_nodeids, strict=False))
    weights, has_weight = _weights(context, index, keys, class_ids, class_weights, columns)
    if context.wanted[0] and not is_binary:
        _check_label(operands["nodes"], has_weight, count)
    operands |= {"input": rows, "weights": weights, "labels": _labels(context, count, classlabels_int64s)}
    if base_values:
        operands["base"] = np.array(base_values, np.float32)
    scores, labels = context.composite(
        TREE_ENSEMBLE, operands, function="sum", post_transform=post_transform, **options
    )
    return labels, scores


def _check_label(table: Any, has_weight: NDArray[np.bool_], count: int) -> None:
    """Refuse the label where it is not that of the greatest score in onnxruntime."""
    way_out = "leave the output of labels out, by outputs"
    if count == 2:
        raise RefusedWithWayOut(
            "of two classes that have weights of their own each, onnxruntime's label is not that of the greater",
            way_out,
        )
    is_leaf = table[:, 2] == np.arange(len(table))
    if not has_weight[is_leaf].all():
        raise RefusedWithWayOut("its leaves do not all have a weight for each class", way_out)
