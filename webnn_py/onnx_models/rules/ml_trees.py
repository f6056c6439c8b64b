"""Ensembles of decision trees, by their attributes: the weights of the leaves that rows reach."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.ml_classifiers import classes_of, labels_of, rows_of
from webnn_py.operators.classical import Transform
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused, refuse
from webnn_py.operators.tree_ensembles import COMPARISONS, LEAF, TREE_ENSEMBLE, Integers, Trees

DEEPEST: Final = 256
"""The most levels of a tree; each costs a dozen operators."""

MODES: Final[Mapping[str, int]] = {
    "BRANCH_LEQ": COMPARISONS.index("lesser_or_equal"),
    "BRANCH_LT": COMPARISONS.index("lesser"),
    "BRANCH_GTE": COMPARISONS.index("greater_or_equal"),
    "BRANCH_GT": COMPARISONS.index("greater"),
    "BRANCH_EQ": COMPARISONS.index("equal"),
    "BRANCH_NEQ": COMPARISONS.index("not_equal"),
    "LEAF": LEAF,
}

INT32: Final = (-(2**31), 2**31 - 1)
"""Of features beyond there is none, and these are refused where it is known how many there are."""

FUNCTIONS: Final[Mapping[str, str]] = {"SUM": "sum", "AVERAGE": "mean", "MIN": "min", "MAX": "max"}


Leaves = tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]
"""Weights of each node and each class or target, zeros where it has none; whether it has one."""


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


def trees_of(nodes: NodeAttributes) -> tuple[Trees, dict[tuple[int, int], int]]:
    """Return the trees that attributes describe, and the index of each node by the numbers of its tree and its own.

    Raises:
        Refused: they are no trees.
    """
    treeids, modes, missing = nodes.nodes_treeids, nodes.nodes_modes, nodes.nodes_missing_value_tracks_true
    children_of = nodes.nodes_falsenodeids, nodes.nodes_truenodeids
    count = len(nodes.nodes_nodeids)
    lists = (treeids, nodes.nodes_featureids, nodes.nodes_values, modes, *children_of)
    lengths = {*map(len, lists), len(missing) or count}
    if lengths != {count} or not count:
        refuse("the lengths of the attributes of nodes", sorted({*lengths, count}), "the same, and not 0")
    unknown = {*modes} - MODES.keys()
    if unknown:
        refuse("attribute nodes_modes", ", ".join(sorted(unknown)), ", ".join(MODES))
    index = {key: place for place, key in enumerate(zip(treeids, nodes.nodes_nodeids, strict=True))}
    if len(index) != count:
        raise Refused("two nodes of a tree have the same number")
    children: list[int] = []
    try:
        for place, (tree, mode) in enumerate(zip(treeids, modes, strict=True)):
            if mode == "LEAF":
                children += (place, place)
            else:
                children += [index[tree, ids[place]] for ids in children_of]
    except KeyError as error:
        raise Refused(f"tree {error.args[0][0]} has no node {error.args[0][1]}, to which another leads") from error
    table = np.empty([count, 5], np.int32)
    table[:, 1] = [MODES[mode] for mode in modes]
    is_branch = table[:, 1] != LEAF
    table[:, 0] = np.array(nodes.nodes_featureids).clip(*INT32) * is_branch
    table[:, 2:4] = np.array(children).reshape(count, 2)
    table[:, 4] = np.array(missing, bool) & is_branch if missing else False
    roots, depth = _roots_and_depth(table[:, 2:4], is_branch)
    if len(roots) != len({*treeids}):
        refuse("the number of roots", len(roots), f"{len({*treeids})}, one for each tree")
    return Trees(roots, table, np.array(nodes.nodes_values, np.float32), depth), index


def _roots_and_depth(children: Integers, is_branch: npt.NDArray[np.bool_]) -> tuple[Integers, int]:
    """Return the roots of the trees, and their depth.

    Raises:
        Refused: two nodes lead to the same, or there are too many levels.
    """
    led_to = np.bincount(children[is_branch].ravel(), minlength=len(children))
    roots = (led_to == 0).nonzero()[0].astype(np.int32)
    level, depth, seen = roots, 0, len(roots)
    is_tree = bool(led_to.max() <= 1)
    while is_tree and len(branches := level[is_branch[level]]):
        level, depth = children[branches].ravel(), depth + 1
        seen += len(level)
        if depth > DEEPEST:
            refuse("the depth of a tree", f"more than {DEEPEST}", f"at most {DEEPEST}")
    if seen != len(children) or not is_tree:
        raise Refused("the nodes are no trees: more than one leads to a node, or they lead around")
    return roots, depth


def leaves_of(
    context: ConversionContext,
    index: Mapping[tuple[int, int], int],
    treeids: Sequence[int],
    nodeids: Sequence[int],
    ids: Sequence[int],
    weights: Sequence[float],
    count: int,
) -> Leaves:
    """Return the weights of leaves; several weights of a node for one class add up.

    Raises:
        Refused: they speak of what is not there.
    """
    if len({*map(len, (treeids, nodeids, ids, weights))}) > 1:
        refuse("the lengths of the attributes of weights", [*map(len, (treeids, nodeids, ids, weights))], "the same")
    if ids and not 0 <= min(ids) <= max(ids) < count:
        refuse("an id of a class or target", _outside(ids, count), f"from 0 to {count - 1}")
    context.reserve(len(index) * count * 4)
    table = np.zeros([len(index), count], np.float32)
    says = np.zeros([len(index), count], np.bool_)
    try:
        nodes = [index[key] for key in zip(treeids, nodeids, strict=True)]
    except KeyError as error:
        raise Refused(f"tree {error.args[0][0]} has no node {error.args[0][1]}, which has a weight") from error
    np.add.at(table, (nodes, list(ids)), np.array(weights, np.float32))
    says[nodes, list(ids)] = True
    return table, says


def _check_features(nodes: NodeAttributes, rows: MLOperand) -> None:
    """Refuse a node that looks at a feature that rows have not."""
    looked_at = zip(nodes.nodes_featureids, nodes.nodes_modes, strict=True)
    features = [feature for feature, mode in looked_at if mode != "LEAF"]
    if features and not 0 <= min(features) <= max(features) < rows.shape[1]:
        refuse("a feature that a node looks at", _outside(features, rows.shape[1]), f"from 0 to {rows.shape[1] - 1}")


def _outside(indices: Sequence[int], count: int) -> int:
    """Return the first index that is not from 0 to ``count`` - 1."""
    return next(index for index in indices if not 0 <= index < count)


def _combined(
    context: ConversionContext,
    trees: Trees,
    rows: MLOperand,
    base: Sequence[float] | None,
    tables: Mapping[str, Value],
    **options: object,
) -> list[MLOperand]:
    """Return a function of the weights of the leaves that rows reach, over all trees, and ``base``; and labels."""
    operands: dict[str, Value] = {"input": rows, **tables}
    operands |= {"roots": trees.roots, "nodes": trees.nodes, "thresholds": trees.thresholds}
    if base:
        operands["base"] = np.array(base, np.float32)
    return context.composite(TREE_ENSEMBLE, operands, depth=trees.depth, **options)


@rule("ai.onnx.ml.TreeEnsembleRegressor", 1)
def tree_regressor(
    context: ConversionContext,
    x: MLOperand,
    *,
    aggregate_function: Literal["SUM", "AVERAGE", "MIN", "MAX"] = "SUM",
    base_values: Sequence[float] | None = None,
    n_targets: int = 1,
    nodes: NodeAttributes,
    post_transform: Transform = "NONE",
    target_ids: Sequence[int] = (),
    target_nodeids: Sequence[int] = (),
    target_treeids: Sequence[int] = (),
    target_weights: Sequence[float] = (),
) -> MLOperand:
    """Return the sum of the leaves' weights over the trees, or their mean, least or greatest."""
    if n_targets < 1 or (n_targets == 1 and post_transform != "NONE"):
        refuse("attributes n_targets and post_transform", [n_targets, post_transform], "NONE for one target")
    if base_values and len(base_values) != n_targets:
        refuse("the length of attribute base_values", len(base_values), f"{n_targets}, one for each target")
    trees, index = trees_of(nodes)
    weights, says = leaves_of(context, index, target_treeids, target_nodeids, target_ids, target_weights, n_targets)
    if aggregate_function in ("MIN", "MAX") and not says[trees.comparisons == LEAF].all():
        raise Refused(f"its leaves do not all have a weight for each target; for {aggregate_function} they must")
    if n_targets == 1 and len({*zip(target_treeids, target_nodeids, strict=True)}) < len(target_weights):
        raise Refused("a leaf has several weights for the one target; engines differ on whether they add up")
    rows = rows_of(context, x)
    _check_features(nodes, rows)
    options = {"function": FUNCTIONS[aggregate_function], "post_transform": post_transform}
    return _combined(context, trees, rows, base_values, {"weights": weights}, **options)[0]


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
    count, base = classes_of(classlabels_int64s, classlabels_strings), tuple(base_values or ())
    trees, index = trees_of(nodes)
    weights, says = leaves_of(context, index, class_treeids, class_nodeids, class_ids, class_weights, count)
    is_binary = count == 2 and {*class_ids} == {0}
    if count == 1 or (count == 2 and {*class_ids} == {1}):
        refuse(
            "the labels and the classes with weights", [count, *{*class_ids}], "two labels with weights of 0, or more"
        )
    if base and len(base) != (1 if is_binary else count):
        refuse("the length of attribute base_values", len(base), "that of the scores")
    if context.wanted[0] and count == 2 and not is_binary:
        raise RefusedWithWayOut(
            "of two classes that have weights of their own each, onnxruntime's label is not that of the greater",
            "leave the output of labels out, by outputs",
        )
    rows = rows_of(context, x)
    _check_features(nodes, rows)
    tables: dict[str, Value] = {"labels": labels_of(context, count, classlabels_int64s)}
    options: dict[str, object] = {"function": "sum", "post_transform": post_transform}
    if is_binary:
        tables["weights"] = np.ascontiguousarray(weights[:, :1])
        options["is_probability"] = min(class_weights) >= 0
    else:
        tables["weights"] = weights
        if context.wanted[0] and not base and not says[trees.comparisons == LEAF].all():
            tables["has_weight"] = says.astype(np.uint8)
    scores, labels = _combined(context, trees, rows, base, tables, **options)
    return labels, scores
