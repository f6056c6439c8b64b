"""The lowering of ensembles of decision trees to ONNX's operators for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from webnn_py.device.on_onnxruntime.lowering.classical import scores_and_labels
from webnn_py.graph import Constant, Graph, Node
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.table import Written
from webnn_py.operators.tree_ensembles import COMPARISONS, LEAF, TREE_ENSEMBLE, Integers, Trees
from webnn_py.rewriting.composites import drawn_out
from webnn_py.rewriting.passes import ReadConstant
from webnn_py.rewriting.walk import rewrite

MODES: Final = np.array(
    [b"LEAF", b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"BRANCH_EQ", b"BRANCH_NEQ"]
)
"""The names of comparisons in ONNX, in the order of :data:`COMPARISONS`."""

EQUAL: Final = COMPARISONS.index("equal")
NOT_EQUAL: Final = COMPARISONS.index("not_equal")

FUNCTIONS: Final[Mapping[str, str]] = {"sum": "SUM", "mean": "AVERAGE", "min": "MIN", "max": "MAX"}


def decompose_doubtful_trees(graph: Graph, contents: ReadConstant) -> Graph:
    """Decompose the ensembles that onnxruntime would compute otherwise."""
    doubtful = {node for node in graph.nodes if node.operator is TREE_ENSEMBLE and _is_doubtful(node, contents)}
    if not doubtful:
        return graph
    return rewrite(graph, lambda node, current: drawn_out(node, current) if node in doubtful else None)


def _is_doubtful(node: Node, contents: ReadConstant) -> bool:
    """Return whether onnxruntime would not propagate NaN, or would take one score for a probability, or not for one.

    It tells by their signs whether the weights of one of two classes are probabilities. Those of one leaf may have been
    added up.
    """
    function, is_probability = node.options["function"], node.options["is_probability"]
    if function not in {"min", "max"} and is_probability is None:
        return False
    weights = node.operands["weights"]
    assert isinstance(weights, Constant)  # noqa: S101 - the operator requires it
    array = contents(weights)
    return bool(np.isnan(array).any()) if is_probability is None else is_probability is not bool(array.min() >= 0)


def tree_ensemble(body: Body, node: Node, input: OnnxTensor, **tables: OnnxTensor) -> Written:
    """Write TreeEnsembleClassifier or, without labels, TreeEnsembleRegressor, nodes tree by tree, the root first."""
    known: dict[str, Any] = {name: body.known(tensor) for name, tensor in tables.items()}
    trees = Trees(known["roots"], known["nodes"], known["thresholds"], node.options["depth"])
    labels, function = known.get("labels"), node.options["function"]
    prefix = "target" if labels is None else "class"
    lists = _lists(trees, prefix, known["weights"], known.get("has_weight"), is_sum=function in {"sum", "mean"})
    if "base" in known:
        lists["base_values"] = known["base"]
    if labels is not None:
        return scores_and_labels(body, node, "TreeEnsemble", input, lists | {"classlabels_int64s": labels})
    options = {"n_targets": node.outputs[0].shape[1], "aggregate_function": FUNCTIONS[function]}
    return scores_and_labels(body, node, "TreeEnsemble", input, lists, **options)


def _lists(trees: Trees, prefix: str, weights: Array, has_weight: Array | None, *, is_sum: bool) -> dict[str, Array]:
    """Return the list attributes of nodes, and of weights, whose names begin with ``prefix``."""
    comparisons, children = _without_sets(trees.comparisons, trees.children, trees.missing_is_yes)
    order, tree = _in_order(trees.roots, comparisons != LEAF, children, trees.depth)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    modes, number, leaf_weights = comparisons[order], tree[order], weights[order]
    is_leaf = modes == LEAF
    following = np.where(is_leaf[:, None], 0, place[children[order]])
    if has_weight is not None:
        is_written = is_leaf[:, None] & (has_weight[order] != 0)
    elif is_sum:  # a weight of 0 adds nothing
        # But each target needs a weight on some leaf: onnxruntime adds base values only to targets that have one.
        is_written = is_leaf[:, None] & ((leaf_weights != 0) | (number == 0)[:, None])
    else:
        is_written = np.broadcast_to(is_leaf[:, None], leaf_weights.shape)
    leaves, targets = is_written.nonzero()
    lists = {
        "nodes_treeids": number,
        "nodes_nodeids": np.arange(len(order)),
        "nodes_featureids": np.where(is_leaf, 0, trees.features[order]),
        "nodes_values": np.where(is_leaf, np.float32(0), trees.thresholds[order]),
        "nodes_modes": MODES[modes],
        "nodes_falsenodeids": following[:, 0],
        "nodes_truenodeids": following[:, 1],
        f"{prefix}_treeids": number[leaves],
        f"{prefix}_nodeids": leaves,
        f"{prefix}_ids": targets,
        f"{prefix}_weights": leaf_weights[leaves, targets],
    }
    if trees.missing_is_yes.any():
        lists["nodes_missing_value_tracks_true"] = trees.missing_is_yes[order]
    return lists


def _without_sets(comparisons: Array, children: Array, missing_is_yes: Array) -> tuple[Array, Array]:
    """Replace "equal" by "not equal" with swapped children where NaN takes the "no" branch; return both arrays.

    onnxruntime merges chains of "equal" whose branches lead to leaves of the same weight into one set. But it compares
    the weights of the first target only, and ignores the other node's branch for NaN; and where leaves have no weight,
    it may end the process.
    """
    turned = (comparisons == EQUAL) & (missing_is_yes == 0)
    if not turned.any():
        return comparisons, children
    exchanged = np.where(turned[:, None], children[:, ::-1], children)
    return np.where(turned, NOT_EQUAL, comparisons), exchanged


def _in_order(
    roots: Integers, is_branch: npt.NDArray[np.bool_], children: Integers, depth: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the indices of the nodes, tree by tree, each from the root down; and the number of each node's tree."""
    tree = np.zeros(len(children), np.intp)
    tree[roots] = np.arange(len(roots))
    levels = [roots]
    for _ in range(depth):
        branches = levels[-1][is_branch[levels[-1]]]
        levels.append(children[branches].ravel())
        tree[levels[-1]] = tree[branches].repeat(2)
    order = np.concatenate(levels)
    return order[np.argsort(tree[order], kind="stable")].astype(np.intp), tree
