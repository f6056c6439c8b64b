"""Ensembles of decision trees: as one node, or as rows descend them.

This takes one level at a time or, for small trees, all comparisons of a tree at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.classical import (
    LABELS,
    NUMBERS,
    ROWS,
    SCORES,
    Array,
    Transform,
    both_sides,
    constant,
    label_of,
    label_of_two,
    scores_and_labels,
    transformed,
)
from webnn_py.operators.declaration import Operator
from webnn_py.operators.decomposing.common import number
from webnn_py.operators.limits import LimitsRow, limit
from webnn_py.operators.methods import Builder
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import check_shape, refuse

Integers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Way = tuple[tuple[int, int], ...]
Walk = tuple[list[int], list[tuple[int, Way]]]
At = Callable[[MLOperand], MLOperand]

LEAF: Final = 0
"""In the place of a comparison."""

COMPARISONS: Final = ("", "lesser_or_equal", "lesser", "greater_or_equal", "greater", "equal", "not_equal")
"""The operators that compare a feature with a threshold, by their numbers; a leaf has none."""

MOST_PRODUCTS: Final = 2**18
"""The most triples of a row, a branch and a leaf of its tree for which all comparisons are made at once, small
trees filled up to the largest: a multiplication for each then takes less than a dozen operators for each level."""

TREES: Final[LimitsRow] = {
    "input": ROWS,
    "roots": limit(("int32",), rank=1),
    "nodes": limit(("int32",), rank=2),
    "thresholds": NUMBERS,
    "weights": ROWS,
    "has_weight": limit(("uint8",), rank=2),
    "base": NUMBERS,
    "labels": LABELS,
    **SCORES,
}


def tree_ensemble(
    input: MLOperand,
    roots: MLOperand,
    nodes: MLOperand,
    thresholds: MLOperand,
    weights: MLOperand,
    *,
    has_weight: MLOperand | None = None,
    base: MLOperand | None = None,
    labels: MLOperand | None = None,
    depth: int,
    function: Literal["sum", "mean", "max", "min"],
    is_probability: bool | None = None,
    post_transform: Transform,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Reduce the values of the leaves that each row reaches over all trees; return the label of the greatest as well.

    All operands but ``input`` are constants. To each node but the roots another leads, one alone. Of a leaf only its
    comparison, the nodes that it leads to and its weights are read.

    Args:
        input: [rows, features].
        roots: the indices of the trees' first nodes, [trees].
        nodes: the columns of :class:`Trees`, [nodes, 5].
        thresholds: the numbers that features are compared with, [nodes].
        weights: what a leaf says of each target, [nodes, targets].
        has_weight: 1 where a leaf has a weight of a target, [nodes, targets]; classes for which none of the leaves has
            one come last. When absent, all have.
        base: what is added to each target behind the reduction, [targets].
        labels: those of the classes, [classes]; None for a regression. Where there is one target, it is the score of
            the second of two classes.
        depth: how many levels of comparisons there are at most.
        function: the reduction; the sum of classes.
        is_probability: whether the score of one of two classes is 1 less that of the other, and not its negative; None
            where there are as many scores as classes.
        post_transform: the function that is then applied to the scores.
        label: what the node is called.

    Returns:
        [rows, targets or classes]; with labels, those of the rows as well, [rows].
    """
    if depth == 0:  # drawn, so that graphs have the same inputs on all devices
        refuse("depth", 0, "more, so that something looks at the input")
    count, targets = weights.shape
    check_shape("nodes", nodes, [count, 5])
    check_shape("thresholds", thresholds, [count])
    if has_weight is not None:
        check_shape("has_weight", has_weight, [count, targets])
    if (is_probability is not None) is not (labels is not None and targets == 1):
        refuse("is_probability", is_probability, "given for one score of two classes, and for no other")
    return scores_and_labels(input, targets, base, labels, "base")


TREE_ENSEMBLE: Final = Operator(tree_ensemble, "treeEnsemble", TREES)


@attrs.frozen(eq=False)
class Trees:
    """The nodes of all trees, as :func:`tree_ensemble` is given them, without their weights.

    Attributes:
        roots: the indices of the first nodes.
        nodes: for each node five columns: the feature that it reads; how this is compared, by the numbers of
            :data:`COMPARISONS`, or :data:`LEAF`; the indices of the nodes for "no" and for "yes", of a leaf its own;
            whether NaN is "yes" to any comparison.
        thresholds: the numbers that features are compared with.
        depth: the most levels of comparisons.
    """

    roots: Integers
    nodes: Integers
    thresholds: Floats
    depth: int

    @property
    def features(self) -> Integers:
        """The features that nodes read."""
        return self.nodes[:, 0]

    @property
    def comparisons(self) -> Integers:
        """The numbers of the comparisons."""
        return self.nodes[:, 1]

    @property
    def children(self) -> Integers:
        """The indices of the nodes for "no" and "yes"."""
        return self.nodes[:, 2:4]

    @property
    def missing_is_yes(self) -> Integers:
        """1 where NaN is "yes", else 0."""
        return self.nodes[:, 4]


@attrs.frozen(eq=False)
class Questions:
    """The comparisons of some nodes.

    Attributes:
        thresholds: what features are compared with.
        comparisons: each kind of comparison, and which nodes mean it.
        missing_is_yes: which nodes say "yes" to NaN; None where none does.
    """

    thresholds: MLOperand
    comparisons: tuple[tuple[str, MLOperand], ...]
    missing_is_yes: MLOperand | None

    @classmethod
    def of(cls, builder: Builder, trees: Trees, nodes: Integers) -> Questions:
        """Return the comparisons of these nodes."""
        asked, missing = trees.comparisons[nodes], trees.missing_is_yes[nodes]
        used = [code for code in range(1, len(COMPARISONS)) if (asked == code).any()]
        return cls(
            constant(builder, trees.thresholds[nodes]),
            tuple((COMPARISONS[code], constant(builder, (asked == code).astype(np.uint8))) for code in used),
            constant(builder, missing.astype(np.uint8)) if missing.any() else None,
        )

    def answers(self, builder: Builder, value: MLOperand, at: At) -> MLOperand:
        """Return whether nodes answer yes for the values of their features; ``at`` gives the parts of these nodes."""
        threshold = at(self.thresholds)
        says_yes: MLOperand
        (_, says_yes), *others = [
            (is_meant, getattr(builder, comparison)(value, threshold)) for comparison, is_meant in self.comparisons
        ]
        for is_meant, answer in others:
            says_yes = builder.where(at(is_meant), answer, says_yes)
        if self.missing_is_yes is not None:
            goes_on = at(self.missing_is_yes)
            says_yes = builder.logical_or(says_yes, builder.logical_and(builder.is_nan(value), goes_on))
        return says_yes


@attrs.frozen(eq=False)
class Paths:
    """Return the answers that lead to each leaf; none lead to the padding of smaller trees.

    Attributes:
        branches: of each tree, the indices of its branches.
        leaves: of each tree, the indices of its leaves.
        ways: of each tree, branch and leaf, 1 where "yes" leads there, -1 where "no" does, 0 elsewhere.
        yeses: of each tree and leaf, how many say "yes" on the way; 1 where nothing leads.
    """

    branches: Integers
    leaves: Integers
    ways: npt.NDArray[np.float32]
    yeses: npt.NDArray[np.float32]


def paths_of(trees: Trees, rows: int) -> Paths | None:
    """Return the paths through all trees; None where they are too large for so many rows."""
    walks: list[Walk] = []
    for root in trees.roots:
        walk = _walk(trees, int(root), MOST_PRODUCTS // (rows * len(trees.roots)))
        if walk is None:
            return None
        walks.append(walk)
    most_branches, most_leaves = (max(len(walk[part]) for walk in walks) for part in (0, 1))
    branches, leaves = (np.zeros([len(walks), most], np.int32) for most in (most_branches, most_leaves))
    ways = np.zeros([len(walks), most_branches, most_leaves], np.float32)
    yeses = np.ones([len(walks), 1, most_leaves], np.float32)
    for tree, (asked, ends) in enumerate(walks):
        branches[tree, : len(asked)] = asked
        for place, (leaf, way) in enumerate(ends):
            leaves[tree, place] = leaf
            yeses[tree, 0, place] = sum(sign > 0 for _, sign in way)
            for branch, sign in way:
                ways[tree, branch, place] = sign
    return Paths(branches, leaves, ways, yeses)


def _walk(trees: Trees, root: int, most_pairs: int) -> Walk | None:
    """A tree's branches, and its leaves, each with the numbers of the branches on its way and which side that takes.

    None where there are more pairs of a branch and a leaf.
    """
    branches: list[int] = []
    leaves: list[tuple[int, Way]] = []
    waiting: list[tuple[int, Way]] = [(root, ())]
    while waiting:
        node, way = waiting.pop()
        if trees.comparisons[node] == LEAF:
            leaves.append((node, way))
            continue
        waiting += [(int(trees.children[node, yes]), (*way, (len(branches), 2 * yes - 1))) for yes in (0, 1)]
        branches.append(node)
        if len(branches) * (len(branches) + 1) > most_pairs:
            return None
    return branches, leaves


def by_operators(
    builder: Builder,
    input: MLOperand,
    *,
    weights: Floats,
    has_weight: Flags | None = None,
    base: Floats | None = None,
    labels: Array | None = None,
    function: Literal["sum", "mean", "max", "min"],
    is_probability: bool | None = None,
    post_transform: Transform,
    **of_trees: Any,
) -> list[MLOperand]:
    """Draw :func:`tree_ensemble`, of which all but the input is given as arrays."""
    trees = Trees(**of_trees)

    def summed(weights: Floats, base: Floats | None) -> MLOperand:
        reduced = _said(builder, trees, input, weights, getattr(builder, f"reduce_{function}"))
        return reduced if base is None else builder.add(reduced, constant(builder, base))

    if labels is None:
        return [transformed(builder, summed(weights, base), post_transform)]
    if is_probability is not None:
        scores, of_second = _of_both_sides(
            builder, summed, weights, base, post_transform, is_probability=is_probability
        )
        return [scores, label_of_two(builder, of_second, 0.5 if is_probability else 0, labels)]
    if has_weight is None:
        scores = among = summed(weights, base)
    else:
        both = np.concatenate([weights, has_weight.astype(np.float32)], axis=1)
        scores, counts = builder.split(summed(both, None), 2, axis=1)
        has_any = builder.greater(counts, number(builder, 0, scores))
        among = builder.where(has_any, scores, number(builder, -np.inf, scores))
    return [transformed(builder, scores, post_transform), label_of(builder, among, labels)]


def _of_both_sides(
    builder: Builder,
    summed: Callable[[Floats, Floats | None], MLOperand],
    weights: Floats,
    base: Floats | None,
    post_transform: Transform,
    *,
    is_probability: bool,
) -> tuple[MLOperand, MLOperand]:
    """Return the scores of two classes by the weights of the second, and its own as they were.

    Unless something is added to a probability, the trees sum up both, 1 - x or -x and x, rounded as if subtracted.
    """
    is_logistic = post_transform == "LOGISTIC"
    is_one_less = is_probability and not is_logistic
    if base is not None and is_one_less:
        score = summed(weights, base)
        return both_sides(builder, score, post_transform, is_probability=True), score
    if is_one_less:
        added: Floats | None = np.array((1, 0), np.float32)
    else:
        added = None if base is None else np.concatenate([-base, base])
    sums = summed(np.concatenate([-weights, weights], axis=1), added)
    of_second = builder.gather(sums, constant(builder, np.array(1, np.int32)), axis=1)
    return builder.sigmoid(sums) if is_logistic else sums, of_second


def _said(
    builder: Builder, trees: Trees, input: MLOperand, weights: Floats, reduce: Callable[..., MLOperand]
) -> MLOperand:
    """Reduce the weights of the leaves that rows reach."""
    paths = paths_of(trees, input.shape[0]) if trees.depth and np.isfinite(weights).all() else None
    if paths is None:
        return reduce(builder.gather(constant(builder, weights), _descended(builder, trees, input)), axes=[1])
    comes_there, leaves = _answered(builder, trees, paths, input), paths.leaves
    if len(leaves) == 1:
        return builder.matmul(comes_there, constant(builder, weights[leaves[0]]))
    return reduce(builder.matmul(comes_there, constant(builder, weights[leaves])), axes=[0])


def _descended(builder: Builder, trees: Trees, input: MLOperand) -> MLOperand:
    """Return the leaf of each row and tree, a level at a time."""
    place = constant(builder, np.tile(trees.roots, [input.shape[0], 1]))
    features = constant(builder, trees.features)
    questions = Questions.of(builder, trees, np.arange(len(trees.features), dtype=np.int32))
    following, two = constant(builder, trees.children.ravel()), number(builder, 2, place)
    for _ in range(trees.depth):
        value = builder.gather_elements(input, builder.gather(features, place), axis=1)
        says_yes = questions.answers(builder, value, partial(builder.gather, indices=place))
        place = builder.gather(following, builder.add(builder.mul(place, two), builder.cast(says_yes, "int32")))
    return place


def _answered(builder: Builder, trees: Trees, paths: Paths, input: MLOperand) -> MLOperand:
    """Return, for each tree, row and leaf, 1 where all answers lead there, else 0; a single tree has no dimension."""
    count, branches = paths.branches.shape
    nodes, ways, yeses = paths.branches.ravel(), paths.ways, paths.yeses
    value = builder.gather(input, constant(builder, trees.features[nodes]), axis=1)
    says_yes = builder.cast(Questions.of(builder, trees, nodes).answers(builder, value, lambda item: item), "float32")
    if count == 1:
        ways, yeses = ways[0], yeses[0]
    else:
        by_tree = builder.reshape(says_yes, [input.shape[0], count, branches])
        says_yes = builder.transpose(by_tree, permutation=[1, 0, 2])
    agreeing = builder.matmul(says_yes, constant(builder, ways))
    return builder.cast(builder.equal(agreeing, constant(builder, yeses)), "float32")
