"""Ensembles of decision trees: as one node, or as rows descend them.

This takes one level at a time or, for small trees, all comparisons of a tree at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, cast

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.operators.declaration import Operator
from webnn_py.operators.decomposing.common import number
from webnn_py.operators.limits import LimitsRow, limit
from webnn_py.operators.methods import Builder
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import check_shape, output, refuse

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
"""So many triples of a row, a branch and a leaf of its tree may there be where all comparisons are made at once, small
trees filled up to the largest: a multiplication for each then takes less than a dozen operators for each level."""

_NUMBERS: Final = limit(("float32",), rank=1)
_INDICES: Final = limit(("int32",), rank=1)
_CODES: Final = limit(("uint8",), rank=1)
_ROWS: Final = limit(("float32",), rank=2)

TREES: Final[LimitsRow] = {
    "input": _ROWS,
    "roots": _INDICES,
    "features": _INDICES,
    "thresholds": _NUMBERS,
    "comparisons": _CODES,
    "children": _INDICES,
    "missing_is_yes": _CODES,
    "weights": _ROWS,
    "base": _NUMBERS,
    "output0": _ROWS,
}


def tree_ensemble(
    input: MLOperand,
    roots: MLOperand,
    features: MLOperand,
    thresholds: MLOperand,
    comparisons: MLOperand,
    children: MLOperand,
    missing_is_yes: MLOperand,
    weights: MLOperand,
    *,
    base: MLOperand | None = None,
    depth: int,
    function: Literal["sum", "mean", "max", "min"],
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Reduce the values of the leaves that each row reaches over all trees.

    All operands but ``input`` are constants. To each node but the roots another leads, one alone. Of leaves nothing is
    looked at but ``comparisons``, ``children`` and ``weights``.

    Args:
        input: [rows, features].
        roots: the indices of the trees' first nodes, [trees].
        features: which feature a node looks at, [nodes].
        thresholds: what that is compared with, likewise.
        comparisons: how, by the numbers of :data:`COMPARISONS`, likewise; :data:`LEAF` for leaves.
        children: the indices of the node for "no" and of that for "yes", one behind the other, [2 · nodes]; leaves lead
            to themselves.
        missing_is_yes: 1 where NaN is "yes" to any comparison, [nodes].
        weights: what a leaf says of each target, [nodes, targets].
        base: what is added to each target behind the reduction, [targets].
        depth: how many levels of comparisons there are at most.
        function: the reduction.
        label: what the node is called.

    Returns:
        [rows, targets].
    """
    if depth == 0:  # drawn, so that graphs have the same inputs on all devices
        refuse("depth", 0, "more, so that something looks at the input")
    nodes, targets = weights.shape
    of_nodes = {
        "features": features,
        "thresholds": thresholds,
        "comparisons": comparisons,
        "missing_is_yes": missing_is_yes,
    }
    for name, item in of_nodes.items():
        check_shape(name, item, [nodes])
    check_shape("children", children, [2 * nodes])
    check_shape("base", base, [targets])
    return [output("float32", (input.shape[0], targets))]


TREE_ENSEMBLE: Final = Operator(tree_ensemble, "treeEnsemble", TREES)


@attrs.frozen(eq=False)
class Trees:
    """The nodes of all trees, as :func:`tree_ensemble` is given them, but for what leaves say."""

    roots: Integers
    features: Integers
    thresholds: Floats
    comparisons: Flags
    children: Integers
    missing_is_yes: Flags
    depth: int

    @property
    def tables(self) -> dict[str, npt.NDArray[Any]]:
        """The constants, by parameter."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(Trees) if field.name != "depth"}


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
            _constant(builder, trees.thresholds[nodes]),
            tuple((COMPARISONS[code], _constant(builder, (asked == code).astype(np.uint8))) for code in used),
            _constant(builder, missing) if missing.any() else None,
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
        leaves: likewise, of its leaves.
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
        waiting += [(int(trees.children[2 * node + yes]), (*way, (len(branches), 2 * yes - 1))) for yes in (0, 1)]
        branches.append(node)
        if len(branches) * (len(branches) + 1) > most_pairs:
            return None
    return branches, leaves


def by_operators(
    builder: Builder,
    input: MLOperand,
    *,
    weights: Floats,
    base: Floats | None = None,
    function: Literal["sum", "mean", "max", "min"],
    **of_trees: Any,
) -> list[MLOperand]:
    """Draw :func:`tree_ensemble`, of which all but the input is given as arrays."""
    said = _said(builder, Trees(**of_trees), input, weights, getattr(builder, f"reduce_{function}"))
    return [said if base is None else builder.add(said, _constant(builder, base))]


def _said(
    builder: Builder, trees: Trees, input: MLOperand, weights: Floats, reduce: Callable[..., MLOperand]
) -> MLOperand:
    """Reduce the weights of the leaves that rows reach."""
    paths = paths_of(trees, input.shape[0]) if trees.depth and np.isfinite(weights).all() else None
    if paths is None:
        return reduce(builder.gather(_constant(builder, weights), _descended(builder, trees, input)), axes=[1])
    comes_there, leaves = _answered(builder, trees, paths, input), paths.leaves
    if len(leaves) == 1:
        return builder.matmul(comes_there, _constant(builder, weights[leaves[0]]))
    return reduce(builder.matmul(comes_there, _constant(builder, weights[leaves])), axes=[0])


def _constant(builder: Builder, array: npt.NDArray[Any]) -> MLOperand:
    data_type = cast("MLOperandDataType", array.dtype.name)
    return builder.constant(array.tobytes(), data_type=data_type, shape=array.shape)


def _descended(builder: Builder, trees: Trees, input: MLOperand) -> MLOperand:
    """Return the leaf of each row and tree, a level at a time."""
    place = _constant(builder, np.tile(trees.roots, [input.shape[0], 1]))
    features = _constant(builder, trees.features)
    questions = Questions.of(builder, trees, np.arange(len(trees.features), dtype=np.int32))
    following, two = _constant(builder, trees.children), number(builder, 2, place)
    for _ in range(trees.depth):
        value = builder.gather_elements(input, builder.gather(features, place), axis=1)
        says_yes = questions.answers(builder, value, partial(builder.gather, indices=place))
        place = builder.gather(following, builder.add(builder.mul(place, two), builder.cast(says_yes, "int32")))
    return place


def _answered(builder: Builder, trees: Trees, paths: Paths, input: MLOperand) -> MLOperand:
    """Of each tree, row and leaf, 1 where all answers lead to the leaf, and 0; a single tree has no dimension."""
    count, branches = paths.branches.shape
    nodes, ways, yeses = paths.branches.ravel(), paths.ways, paths.yeses
    value = builder.gather(input, _constant(builder, trees.features[nodes]), axis=1)
    says_yes = builder.cast(Questions.of(builder, trees, nodes).answers(builder, value, lambda item: item), "float32")
    if count == 1:
        ways, yeses = ways[0], yeses[0]
    else:
        by_tree = builder.reshape(says_yes, [input.shape[0], count, branches])
        says_yes = builder.transpose(by_tree, permutation=[1, 0, 2])
    agreeing = builder.matmul(says_yes, _constant(builder, ways))
    return builder.cast(builder.equal(agreeing, _constant(builder, yeses)), "float32")
