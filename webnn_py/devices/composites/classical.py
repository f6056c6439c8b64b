"""Linear models and ensembles of decision trees, each as one node or in other operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, cast

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.core.decompositions.common import number
from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import LimitsRow, limit
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_shape, output

Array = npt.NDArray[Any]
Reduce = Callable[..., MLOperand]

Transform = Literal["NONE", "LOGISTIC", "SOFTMAX"]
"""A function that is applied to the scores of each row."""

Comparison = Literal["lesser_or_equal", "lesser", "greater_or_equal", "greater"]
"""The operator by which nodes of trees compare a feature with a threshold."""

MOST_PRODUCTS: Final = 2**18
"""The most triples of a row, a branch and a leaf of its tree for which all branches are asked at once: two products
then take less time than seven operators for each level."""

ROWS: Final = limit(("float32",), rank=2)
NUMBERS: Final = limit(("float32",), rank=1)
LABELS: Final = limit(("int64", "int32"), rank=1)

SCORES: Final[LimitsRow] = {"output0": ROWS, "output1": LABELS}


def _scores_and_labels(
    input: MLOperand, columns: int, labels: MLOperand | None, added: dict[str, MLOperand | None]
) -> list[MLOperandDescriptor]:
    """Return the descriptors of the scores of each row and, with ``labels``, of its label."""
    for name, operand in added.items():
        if operand is not None:
            check_shape(name, operand, [columns])
    rows = input.shape[0]
    if labels is None:
        return [output("float32", (rows, columns))]
    classes = 2 if columns == 1 else columns
    check_shape("labels", labels, [classes])
    return [output("float32", (rows, classes)), output(labels.data_type, (rows,))]


def constant(builder: Builder, array: Array) -> MLOperand:
    """Return an array as a constant."""
    data_type = cast("MLOperandDataType", array.dtype.name)
    return builder.constant(array.tobytes(), data_type=data_type, shape=array.shape)


def _transformed(builder: Builder, scores: MLOperand, post_transform: Transform) -> MLOperand:
    if post_transform == "LOGISTIC":
        return builder.sigmoid(scores)
    return builder.softmax(scores, 1) if post_transform == "SOFTMAX" else scores


def _of_two(
    builder: Builder, score: MLOperand, post_transform: Transform, labels: Array, *, whole: float, threshold: float
) -> list[MLOperand]:
    """Return both scores and the label from the score of the second class; softmax is left out, as in onnxruntime."""
    above = builder.greater(builder.reshape(score, [score.shape[0]]), number(builder, threshold, score))
    first, second = (constant(builder, label) for label in labels)
    if post_transform == "LOGISTIC":
        both = builder.sigmoid(builder.concat([builder.neg(score), score], 1))
    else:
        both = builder.concat([builder.sub(number(builder, whole, score), score), score], 1)
    return [both, builder.where(above, second, first)]


def _of_many(builder: Builder, scores: MLOperand, post_transform: Transform, labels: Array) -> list[MLOperand]:
    """Return the scores and the label of the greatest one of each row."""
    table = constant(builder, labels)
    if np.array_equal(labels, np.arange(len(labels))):  # as scikit-learn's usually are
        best = builder.arg_max(scores, 1, output_data_type=table.data_type)
    else:
        best = builder.gather(table, builder.arg_max(scores, 1))
    return [_transformed(builder, scores, post_transform), best]


def linear_model(
    input: MLOperand,
    coefficients: MLOperand,
    *,
    intercepts: MLOperand | None = None,
    labels: MLOperand | None = None,
    post_transform: Transform,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Return scores, which are products with coefficients, and the label of the class with the greatest one.

    All operands but ``input`` are constants.

    Args:
        input: [rows, features].
        coefficients: [scores, features].
        intercepts: the numbers that are added to the scores, [scores].
        labels: those of the classes, [classes]; None for a regression. Where there is one score, it is that of the
            second of two classes.
        post_transform: the function that is then applied to the scores.
        label: the name of the node.

    Returns:
        [rows, scores or classes]; with labels, those of the rows as well, [rows].
    """
    columns = coefficients.shape[0]
    check_shape("coefficients", coefficients, [columns, input.shape[1]])
    return _scores_and_labels(input, columns, labels, {"intercepts": intercepts})


LINEAR_LIMITS: Final[LimitsRow] = {
    "input": ROWS,
    "coefficients": ROWS,
    "intercepts": NUMBERS,
    "labels": LABELS,
    **SCORES,
}


def by_product(
    builder: Builder,
    input: MLOperand,
    *,
    coefficients: Array,
    intercepts: Array | None = None,
    labels: Array | None = None,
    post_transform: Transform,
) -> list[MLOperand]:
    """Draw :func:`linear_model`, of which all but the input is given as arrays."""
    scores = builder.matmul(input, constant(builder, coefficients.T))
    if intercepts is not None:
        scores = builder.add(scores, constant(builder, intercepts))
    if labels is None:
        return [_transformed(builder, scores, post_transform)]
    if len(coefficients) == 1:
        return _of_two(builder, scores, post_transform, labels, whole=1, threshold=0)
    return _of_many(builder, scores, post_transform, labels)


def tree_ensemble(
    input: MLOperand,
    nodes: MLOperand,
    thresholds: MLOperand,
    weights: MLOperand,
    *,
    base: MLOperand | None = None,
    labels: MLOperand | None = None,
    comparison: Comparison,
    depth: int,
    function: Literal["sum", "mean"],
    post_transform: Transform,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Reduce the weights of the leaves that each row reaches over all trees; return the label of the greatest as well.

    All operands but ``input`` are constants.

    Args:
        input: [rows, features].
        nodes: tree by tree, from the root, five columns: the number of the tree, the feature that is compared, the
            indices of the nodes for "no" and for "yes", of a leaf its own, and 1 where NaN is "yes": [nodes, 5].
        thresholds: the numbers that features are compared with, [nodes].
        weights: those of leaves, [nodes, targets].
        base: what is added to each target behind the reduction, [targets].
        labels: those of the classes, [classes]; None for a regression. Where there is one target, it is the score of
            the second of two classes, and a probability unless a weight is negative.
        comparison: the operator that compares.
        depth: how many levels of comparisons there are at most.
        function: the reduction.
        post_transform: the function that is then applied to the scores.
        label: what the node is called.

    Returns:
        [rows, targets or classes]; with labels, those of the rows as well, [rows].
    """
    count, targets = weights.shape
    check_shape("nodes", nodes, [count, 5])
    check_shape("thresholds", thresholds, [count])
    return _scores_and_labels(input, targets, labels, {"base": base})


TREE_LIMITS: Final[LimitsRow] = {
    "input": ROWS,
    "nodes": limit(("int32",), rank=2),
    "thresholds": NUMBERS,
    "weights": ROWS,
    "base": NUMBERS,
    "labels": LABELS,
    **SCORES,
}


def by_comparisons(
    builder: Builder,
    input: MLOperand,
    *,
    weights: Array,
    base: Array | None = None,
    labels: Array | None = None,
    function: Literal["sum", "mean"],
    post_transform: Transform,
    **of_trees: Any,
) -> list[MLOperand]:
    """Draw :func:`tree_ensemble`, of which all but the input is given as arrays."""
    trees = _Trees(**of_trees)
    reduce = builder.reduce_sum if function == "sum" else builder.reduce_mean
    scores = _at_once(builder, input, trees, weights, reduce)
    if scores is None:
        scores = _by_levels(builder, input, trees, weights, reduce)
    if base is not None:
        scores = builder.add(scores, constant(builder, base))
    if labels is None:
        return [_transformed(builder, scores, post_transform)]
    if weights.shape[1] == 1:
        is_probability = not (weights < 0).any()
        whole, threshold = (1, 0.5) if is_probability else (0, 0)
        return _of_two(builder, scores, post_transform, labels, whole=whole, threshold=threshold)
    return _of_many(builder, scores, post_transform, labels)


@attrs.frozen(eq=False)
class _Trees:
    """The trees, as :func:`tree_ensemble` is given them."""

    nodes: Array
    thresholds: Array
    comparison: Comparison
    depth: int

    @property
    def asked(self) -> list[Array]:
        """What comparisons read of each node: the feature, the threshold, and whether NaN is "yes", if any is."""
        missing = self.nodes[:, 4].astype(np.uint8)
        return [self.nodes[:, 1], self.thresholds, *([missing] if missing.any() else [])]

    def is_yes(self, builder: Builder, value: MLOperand, threshold: MLOperand, *missing_is_yes: MLOperand) -> MLOperand:
        """Return which nodes say "yes" to the values of their features."""
        answer: MLOperand = getattr(builder, self.comparison)(value, threshold)
        for each in missing_is_yes:
            answer = builder.logical_or(answer, builder.logical_and(builder.is_nan(value), each))
        return answer


def _by_levels(builder: Builder, input: MLOperand, trees: _Trees, weights: Array, reduce: Reduce) -> MLOperand:
    """Reduce the weights of the leaves that rows reach by descending one level at a time."""
    children = trees.nodes[:, 2:4].ravel()  # at twice the index of a node that of "no", and behind it that of "yes"
    tables = [constant(builder, np.repeat(array, 2)) for array in trees.asked]
    following = constant(builder, 2 * children)
    roots = np.unique(trees.nodes[:, 0], return_index=True)[1].astype(np.int32)
    place = constant(builder, np.tile(2 * roots, [input.shape[0], 1]))
    for level in range(trees.depth):
        feature, *of_node = [builder.gather(table, place) for table in tables]
        is_yes = trees.is_yes(builder, builder.gather_elements(input, feature, axis=1), *of_node)
        place = builder.add(place, builder.cast(is_yes, "int32"))
        place = builder.gather(following, place) if level + 1 < trees.depth else place
    return reduce(builder.gather(constant(builder, weights[children]), place), axes=[1])


def _at_once(builder: Builder, input: MLOperand, trees: _Trees, weights: Array, reduce: Reduce) -> MLOperand | None:
    """Do so by asking all branches, and by a product that counts the answers on the way to each leaf.

    None where this is more than :data:`MOST_PRODUCTS`.
    """
    nodes = trees.nodes
    is_leaf = nodes[:, 2] == np.arange(len(nodes))
    branches, leaves = (_by_tree(nodes[:, 0], which) for which in (~is_leaf, is_leaf))
    rows, (count, most) = input.shape[0], branches.shape
    if not most or rows * branches.size * leaves.shape[1] > MOST_PRODUCTS or not np.isfinite(weights).all():
        return None
    asking, column = branches[branches >= 0], (branches >= 0).nonzero()[1]
    own, before = np.zeros([len(nodes), most], np.float32), np.arange(len(nodes))
    own[nodes[asking, 2:4], column[:, None]] = -1, 1
    before[nodes[asking, 2:4]] = asking[:, None]
    ways = own
    for _ in range(trees.depth - 1):
        ways = ways[before] + own
    is_there = leaves >= 0
    needed = np.where(is_there, (ways > 0).sum(axis=1)[leaves], 1).astype(np.float32)[:, None]
    ways = np.where(is_there[..., None], ways[leaves], 0).transpose(0, 2, 1)
    feature, *of_node = [constant(builder, array[branches].ravel()) for array in trees.asked]
    is_yes = trees.is_yes(builder, builder.gather(input, feature, axis=1), *of_node)
    answers = builder.cast(is_yes, "float32")
    if count == 1:
        ways, needed, leaves = ways[0], needed[0], leaves[0]
    else:
        answers = builder.transpose(builder.reshape(answers, [rows, count, most]), permutation=[1, 0, 2])
    counted = builder.matmul(answers, constant(builder, np.ascontiguousarray(ways)))
    is_reached = builder.cast(builder.equal(counted, constant(builder, needed)), "float32")
    reached = builder.matmul(is_reached, constant(builder, weights[leaves]))
    return reached if count == 1 else reduce(reached, axes=[0])


def _by_tree(trees: Array, which: Array) -> Array:
    """Return the indices of some nodes, a row for each tree; rows are filled up with -1."""
    index = which.nonzero()[0].astype(np.int32)
    rank = np.arange(len(index)) - np.searchsorted(trees[index], trees[index])
    table = np.full([trees[-1] + 1, rank.max(initial=-1) + 1], -1, np.int32)
    table[trees[index], rank] = index
    return table


LINEAR_MODEL: Final = Composite(
    linear_model, "linearModel", LINEAR_LIMITS, by_product, tables=LINEAR_LIMITS.keys() - {"input", *SCORES}
)
TREE_ENSEMBLE: Final = Composite(
    tree_ensemble, "treeEnsemble", TREE_LIMITS, by_comparisons, tables=TREE_LIMITS.keys() - {"input", *SCORES}
)
