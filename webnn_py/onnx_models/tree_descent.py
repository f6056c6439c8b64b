"""How rows descend decision trees: a level at a time, or, of small trees, all comparisons of a tree at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

Integers = npt.NDArray[np.int32]
Way = tuple[tuple[int, int], ...]
Walk = tuple[list[int], list[tuple[int, Way]]]
At = Callable[[MLOperand], MLOperand]

MOST_PRODUCTS: Final = 2**18
"""So many triples of a row, a branch and a leaf of its tree may there be where all comparisons are made at once, small
trees filled up to the largest: a multiplication for each then takes less than a dozen operators for each level."""

COMPARISONS: Final[Mapping[str, str]] = {
    "BRANCH_LEQ": "lesser_or_equal",
    "BRANCH_LT": "lesser",
    "BRANCH_GTE": "greater_or_equal",
    "BRANCH_GT": "greater",
    "BRANCH_EQ": "equal",
    "BRANCH_NEQ": "not_equal",
}


@attrs.frozen(eq=False)
class Trees:
    """The nodes of all trees. A leaf leads to itself.

    Attributes:
        roots: the indices of the roots.
        features: of each node, the feature that it looks at.
        thresholds: likewise, what that is compared with.
        modes: likewise, how; "LEAF" for leaves.
        next: likewise, the indices of the node for "no" and of that for "yes", one behind the other.
        missing_is_yes: likewise, whether NaN is "yes" to any comparison.
        depth: how many levels of comparisons there are at most.
    """

    roots: Integers
    features: Integers
    thresholds: npt.NDArray[np.float32]
    modes: npt.NDArray[np.str_]
    next: Integers
    missing_is_yes: npt.NDArray[np.bool_]
    depth: int


@attrs.frozen(eq=False)
class Questions:
    """What some nodes ask.

    Attributes:
        thresholds: what features are compared with.
        comparisons: each kind of comparison, and which nodes mean it.
        missing_is_yes: which nodes say "yes" to NaN; None where none does.
    """

    thresholds: MLOperand
    comparisons: tuple[tuple[str, MLOperand], ...]
    missing_is_yes: MLOperand | None

    @classmethod
    def of(cls, context: ConversionContext, trees: Trees, nodes: Integers) -> Questions:
        """What these nodes ask."""
        modes, missing = trees.modes[nodes], trees.missing_is_yes[nodes]
        used = [mode for mode in COMPARISONS if (modes == mode).any()]
        return cls(
            context.constant(trees.thresholds[nodes]),
            tuple((COMPARISONS[mode], context.constant(modes == mode)) for mode in used),
            context.constant(missing) if missing.any() else None,
        )

    def answers(self, context: ConversionContext, value: MLOperand, at: At) -> MLOperand:
        """Whether nodes say yes to the values of their features; ``at`` gives what belongs to these nodes."""
        threshold = at(self.thresholds)
        says_yes: MLOperand
        (_, says_yes), *others = [
            (is_meant, getattr(context, comparison)(value, threshold)) for comparison, is_meant in self.comparisons
        ]
        for is_meant, answer in others:
            says_yes = context.where(at(is_meant), answer, says_yes)
        if self.missing_is_yes is not None:
            goes_on = at(self.missing_is_yes)
            says_yes = context.logical_or(says_yes, context.logical_and(context.is_nan(value), goes_on))
        return says_yes


@attrs.frozen(eq=False)
class Paths:
    """Which answers lead to which leaf; nothing leads to what fills up trees that are smaller than others.

    Attributes:
        branches: of each tree, the indices of its branches.
        leaves: likewise, of its leaves.
        ways: of each tree, branch and leaf, 1 where "yes" leads there, -1 where "no" does, 0 elsewhere.
        yeses: of each tree and leaf, how many say "yes" on the way; 1 where nothing leads.
    """

    branches: Integers
    leaves: Integers
    ways: npt.NDArray[np.float32]
    yeses: npt.NDArray[np.float32]


def paths_of(trees: Trees, rows: int) -> Paths | None:
    """The ways through all trees; None where these are too large for so many rows."""
    walks: list[Walk] = []
    for root in trees.roots:
        walk = _walk(trees, int(root), MOST_PRODUCTS // (rows * len(trees.roots)))
        if walk is None:
            return None
        walks.append(walk)
    most_branches, most_leaves = (max(len(walk[part]) for walk in walks) for part in (0, 1))
    if rows * len(walks) * most_branches * most_leaves > MOST_PRODUCTS:
        return None
    branches, leaves = (np.zeros([len(walks), most], np.int32) for most in (most_branches, most_leaves))
    ways = np.zeros([len(walks), most_branches, most_leaves], np.float32)
    yeses = np.ones([len(walks), 1, most_leaves], np.float32)
    for tree, (asked, ends) in enumerate(walks):
        branches[tree, : len(asked)] = asked
        for number, (leaf, way) in enumerate(ends):
            leaves[tree, number] = leaf
            yeses[tree, 0, number] = sum(sign > 0 for _, sign in way)
            for branch, sign in way:
                ways[tree, branch, number] = sign
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
        if trees.modes[node] == "LEAF":
            leaves.append((node, way))
            continue
        waiting += [(int(trees.next[2 * node + yes]), (*way, (len(branches), 2 * yes - 1))) for yes in (0, 1)]
        branches.append(node)
        if len(branches) * (len(branches) + 1) > most_pairs:
            return None
    return branches, leaves


@attrs.frozen(eq=False)
class Reached:
    """The leaves that rows come to.

    Attributes:
        says: gives of a table with a row for each node those of the leaves, for each row and tree.
        axis: the axis of the trees, of what :attr:`says` gives; None of a single tree.
    """

    says: Callable[[npt.NDArray[np.float32]], MLOperand]
    axis: int | None

    def combined(self, function: Callable[..., MLOperand], table: npt.NDArray[np.float32]) -> MLOperand:
        """What a reduction makes of that over the trees."""
        said = self.says(table)
        return said if self.axis is None else function(said, axes=[self.axis])


def reached(context: ConversionContext, trees: Trees, rows: MLOperand, *, is_finite: bool) -> Reached:
    """The leaf that each row comes to in each tree; whether all tables that it will be asked for are finite."""
    if trees.features.min() < 0 or trees.features.max() >= rows.shape[1]:
        refuse("a feature that a node looks at", int(trees.features.max()), f"from 0 to {rows.shape[1] - 1}")
    paths = paths_of(trees, rows.shape[0]) if trees.depth and is_finite else None
    if paths is None:
        place = _descended(context, trees, rows)
        return Reached(lambda table: context.gather(context.constant(table), place), 1)
    count, leaves = len(paths.leaves), paths.leaves
    comes_there = _answered(context, trees, paths, rows)
    if count == 1:
        return Reached(lambda table: context.matmul(comes_there, context.constant(table[leaves[0]])), None)
    return Reached(lambda table: context.matmul(comes_there, context.constant(table[leaves])), 0)


def _descended(context: ConversionContext, trees: Trees, rows: MLOperand) -> MLOperand:
    """The leaf of each row and tree, a level at a time."""
    place = context.constant(np.tile(trees.roots, [rows.shape[0], 1]))
    features = context.constant(trees.features)
    questions = Questions.of(context, trees, np.arange(len(trees.features), dtype=np.int32))
    following, two = context.constant(trees.next), context.constant(np.array(2, np.int32))
    for _ in range(trees.depth):
        value = context.gather_elements(rows, context.gather(features, place), axis=1)
        says_yes = questions.answers(context, value, partial(context.gather, indices=place))
        place = context.gather(following, context.add(context.mul(place, two), context.cast(says_yes, "int32")))
    return place


def _answered(context: ConversionContext, trees: Trees, paths: Paths, rows: MLOperand) -> MLOperand:
    """Of each tree, row and leaf, 1 where all answers lead to the leaf, and 0; a single tree has no dimension."""
    count, branches = paths.branches.shape
    nodes, ways, yeses = paths.branches.ravel(), paths.ways, paths.yeses
    value = context.gather(rows, context.constant(trees.features[nodes]), axis=1)
    says_yes = context.cast(Questions.of(context, trees, nodes).answers(context, value, lambda item: item), "float32")
    if count == 1:
        ways, yeses = ways[0], yeses[0]
    else:
        by_tree = context.reshape(says_yes, [rows.shape[0], count, branches])
        says_yes = context.transpose(by_tree, permutation=[1, 0, 2])
    agreeing = context.matmul(says_yes, context.constant(ways))
    return context.cast(context.equal(agreeing, context.constant(yeses)), "float32")
