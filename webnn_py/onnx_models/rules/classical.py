"""Linear models and ensembles of decision trees as skl2onnx writes them, with what stands around them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.devices.composites.tree_ensemble import COMPARISONS, TREE_ENSEMBLE
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.rule_table.declaration import rule

DEEPEST: Final = 256
"""The most levels of a tree; each costs a dozen operators."""

Transform = Literal["NONE", "LOGISTIC", "SOFTMAX"]
"""A function that is applied to the scores of each row."""


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


def _classified(
    context: ConversionContext,
    scores: MLOperand,
    ints: Sequence[int] | None,
    strings: Sequence[str] | None,
    post_transform: Transform,
    *,
    whole: float,
    threshold: float,
) -> tuple[MLOperand, MLOperand]:
    """Return the label of the best class of each row, and the scores of all.

    One score is that of the second of two classes: its label is taken above ``threshold``, and the first class has the
    score that both have together, ``whole``, less it.

    Raises:
        Refused: labels are wanted, and are strings.
    """
    count = _number_of_labels(ints, strings)
    if context.wanted[0] and not ints:
        raise RefusedWithWayOut(
            "its labels are strings, which WebNN lacks",
            "leave the output of labels out, by outputs; the scores have a column for each",
        )
    # Labels that no one reads need not be of a type that the device may lack.
    labels = np.array(ints, np.int64) if context.wanted[0] else np.arange(count, dtype=np.int32)
    if scores.shape[1] == 1:
        is_second = context.greater(context.reshape(scores, [scores.shape[0]]), context.number(threshold, scores))
        label = context.where(is_second, context.constant(labels[1]), context.constant(labels[0]))
        if post_transform == "LOGISTIC":
            return label, context.sigmoid(context.concat([context.neg(scores), scores], 1))
        first = context.sub(context.number(whole, scores), scores)
        return label, context.concat([first, scores], 1)  # without softmax, as in onnxruntime
    label = context.gather(context.constant(labels), context.arg_max(scores, 1))
    if post_transform == "LOGISTIC":
        scores = context.sigmoid(scores)
    elif post_transform == "SOFTMAX":
        scores = context.softmax(scores, 1)
    return label, scores


# --- linear models -------------------------------------------------------------------------------------------


def _products(
    context: ConversionContext,
    x: MLOperand,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None,
    columns: int,
) -> MLOperand:
    """Return products with the coefficients of each target or class, plus its intercept, if any."""
    rows = _rows(context, x)
    features = rows.shape[1]
    if len(coefficients) != columns * features:
        needed = f"{columns * features}, {columns} times {features} features"
        refuse("the length of attribute coefficients", len(coefficients), needed)
    if intercepts is not None and len(intercepts) != columns:
        refuse("the length of attribute intercepts", len(intercepts), f"{columns}, one for each score")
    matrix = np.array(coefficients, np.float32).reshape(columns, features)
    products = context.matmul(rows, context.constant(np.ascontiguousarray(matrix.T)))
    if intercepts is None:
        return products
    return context.add(products, context.constant(np.array(intercepts, np.float32)))


@rule("ai.onnx.ml.LinearRegressor", 1)
def linear_regressor(
    context: ConversionContext,
    x: MLOperand,
    *,
    coefficients: Sequence[float] = (),
    intercepts: Sequence[float] | None = None,
    post_transform: Literal["NONE"] = "NONE",
    targets: int = 1,
) -> MLOperand:
    """Return a product with the coefficients of each target, and its intercept."""
    return _products(context, x, coefficients, intercepts or None, targets)


@rule("ai.onnx.ml.LinearClassifier", 1)
def linear_classifier(
    context: ConversionContext,
    x: MLOperand,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float] = (),
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: Transform = "NONE",
) -> tuple[MLOperand, MLOperand]:
    """Multiply by the coefficients of each class, and add its intercept; the first of two classes may be absent."""
    count = _number_of_labels(classlabels_ints, classlabels_strings)
    if count == 1:
        refuse("the number of labels", 1, "2 or more")
    columns = 1 if count == 2 and len(intercepts) == 1 else count
    scores = _products(context, x, coefficients, intercepts, columns)
    return _classified(context, scores, classlabels_ints, classlabels_strings, post_transform, whole=1, threshold=0)


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


Index = Mapping[tuple[int, int], int]
"""The places of nodes in the table, by tree and number."""


def _check_lengths(what: str, *lists: Sequence[Any]) -> None:
    lengths = {*map(len, lists)}
    if len(lengths) > 1 or 0 in lengths:
        refuse(f"the lengths of the attributes of {what}", sorted(lengths), "the same, and not 0")


def _check_range(what: str, numbers: NDArray[np.int64], count: int) -> None:
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if len(wrong):
        refuse(what, int(wrong[0]), f"from 0 to {count - 1}")


def _places(index: Index, trees: Iterable[int], numbers: Iterable[int]) -> list[int]:
    """Return the places of nodes that others lead to, or that have weights."""
    try:
        return [index[key] for key in zip(trees, numbers, strict=True)]
    except KeyError as error:
        tree, number = error.args[0]
        raise Refused(f"tree {tree} has no node {number}, to which another leads or which has a weight") from None


def _trees(nodes: NodeAttributes, features: int) -> tuple[dict[str, Value], dict[str, Any], Index]:
    """Return the nodes of trees as operands and options of the composite, and their places.

    Raises:
        Refused: they are no trees, or compare in several ways, or what rows do not have.
    """
    count = len(nodes.nodes_nodeids)
    missing = nodes.nodes_missing_value_tracks_true or [0] * count
    columns = [nodes.nodes_treeids, nodes.nodes_nodeids, nodes.nodes_featureids]
    columns += [nodes.nodes_falsenodeids, nodes.nodes_truenodeids, missing]
    _check_lengths("nodes", *columns, nodes.nodes_values, nodes.nodes_modes)
    modes = {*nodes.nodes_modes} - {"LEAF"}
    if len(modes) != 1 or not modes <= COMPARISONS.keys():
        allowed = f"LEAF, and one of {', '.join(COMPARISONS)}"
        refuse("attribute nodes_modes", ", ".join(sorted(modes)) or "LEAF", allowed)
    order = np.argsort(nodes.nodes_treeids, kind="stable")
    trees, numbers, feature, no, yes, tracks = np.array(columns, np.int64)[:, order]
    index = {key: place for place, key in enumerate(zip(trees.tolist(), numbers.tolist(), strict=True))}
    if len(index) != count:
        raise Refused("two nodes of a tree have the same number")
    branches = (np.array(nodes.nodes_modes)[order] != "LEAF").nonzero()[0]
    _check_range("a feature that a node looks at", feature[branches], features)
    table = np.zeros([count, 5], np.int32)
    table[:, 0] = np.unique(trees, return_inverse=True)[1]
    table[:, 2:4] = np.arange(count)[:, None]
    table[branches, 1] = feature[branches]
    for column, children in ((2, no), (3, yes)):
        table[branches, column] = _places(index, trees[branches].tolist(), children[branches].tolist())
    table[branches, 4] = tracks[branches] != 0
    operands: dict[str, Value] = {"nodes": table, "thresholds": np.array(nodes.nodes_values, np.float32)[order]}
    return operands, {"depth": _depth(table, branches), "comparison": COMPARISONS[modes.pop()]}, index


def _depth(table: NDArray[np.int32], branches: NDArray[np.intp]) -> int:
    """Return how many levels of comparisons trees have.

    Raises:
        Refused: two nodes lead to the same, a tree does not begin with its root, or there are too many levels.
    """
    led_to = np.bincount(table[branches, 2:4].ravel(), minlength=len(table))
    is_first = np.diff(table[:, 0], prepend=-1) != 0
    if (led_to != np.where(is_first, 0, 1)).any():
        raise Refused("the nodes are no trees of which each begins with its root: to any other node one node must lead")
    level, depth = np.intersect1d(is_first.nonzero()[0], branches), 0
    while len(level):
        level, depth = np.intersect1d(table[level, 2:4], branches), depth + 1
        if depth > DEEPEST:
            refuse("the depth of a tree", f"more than {DEEPEST}", f"at most {DEEPEST}")
    return depth


def _sums(
    context: ConversionContext,
    x: MLOperand,
    nodes: NodeAttributes,
    leaves: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[float]],
    columns: int,
) -> MLOperand:
    """Return the sums of the leaves' weights over the trees, for each row and class or target.

    Args:
        context: that of the node.
        x: the rows.
        nodes: those of the trees.
        leaves: for each weight the number of its tree, of its leaf, of its class or target, and the weight.
        columns: how many classes or targets have weights.
    """
    _check_lengths("weights", *leaves)
    trees, numbers, ids, weights = leaves
    _check_range("an id of a class or target", np.array(ids, np.int64), columns)
    rows = _rows(context, x)
    operands, options, index = _trees(nodes, rows.shape[1])
    places = _places(index, trees, numbers)
    if len({*zip(places, ids, strict=True)}) != len(ids):
        raise Refused("a leaf has several weights for one class or target")
    context.reserve(len(index) * columns * 4)
    table = np.zeros([len(index), columns], np.float32)
    table[places, ids] = weights
    return context.composite(TREE_ENSEMBLE, {"input": rows, "weights": table, **operands}, **options)[0]


def _with_base(context: ConversionContext, scores: MLOperand, base_values: Sequence[float] | None) -> MLOperand:
    if not base_values:
        return scores
    if len(base_values) != scores.shape[1]:
        refuse("the length of attribute base_values", len(base_values), f"{scores.shape[1]}, one for each score")
    return context.add(scores, context.constant(np.array(base_values, np.float32)))


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
    scores = _sums(context, x, nodes, (target_treeids, target_nodeids, target_ids, target_weights), n_targets)
    if aggregate_function == "AVERAGE":
        scores = context.div(scores, context.number(len({*nodes.nodes_treeids}), scores))
    return _with_base(context, scores, base_values)


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
    if count == 1 or {*class_ids} == {1}:
        classes = [count, *{*class_ids}]
        refuse("the labels and the classes with weights", classes, "two labels with weights of 0, or more")
    columns = 1 if count == 2 and {*class_ids} == {0} else count
    scores = _sums(context, x, nodes, (class_treeids, class_nodeids, class_ids, class_weights), columns)
    scores = _with_base(context, scores, base_values)
    is_probability = min(class_weights) >= 0
    whole, threshold = (1, 0.5) if is_probability else (0, 0)
    labels = classlabels_int64s, classlabels_strings
    return _classified(context, scores, *labels, post_transform, whole=whole, threshold=threshold)
