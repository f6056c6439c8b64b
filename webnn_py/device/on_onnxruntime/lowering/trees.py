"""The lowering of ensembles of decision trees to the one operator that ONNX has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.nodes import CLASSICAL
from webnn_py.onnx_export.table import Written
from webnn_py.operators.tree_ensembles import COMPARISONS, LEAF, TREE_ENSEMBLE, Integers
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


def use_tree_regressors(graph: Graph, contents: ReadConstant) -> Graph:
    """Decompose min and max ensembles with NaN among their weights, since onnxruntime does not propagate it."""
    if not any(node.options["function"] in {"min", "max"} for node in graph.nodes if node.operator is TREE_ENSEMBLE):
        return graph

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator is not TREE_ENSEMBLE or node.options["function"] not in {"min", "max"}:
            return None
        weights = node.operands["weights"]
        assert isinstance(weights, Constant)  # noqa: S101 - the operator requires it
        return drawn_out(node, current) if np.isnan(contents(weights)).any() else None

    return rewrite(graph, replace)


def tree_ensemble(body: Body, node: Node, input: OnnxTensor, **tables: OnnxTensor) -> Written:
    """Write TreeEnsembleRegressor, with the nodes of each tree in a row, the root first."""
    known: dict[str, Any] = {name: body.known(tensor) for name, tensor in tables.items()}
    lists, targets = _lists(**known, **node.options)
    how = FUNCTIONS[node.options["function"]]
    options: dict[str, Any] = {
        "domain": CLASSICAL,
        "lists": lists,
        "n_targets": targets,
        "aggregate_function": how,
    }
    return body.nodes_outputs("TreeEnsembleRegressor", [input], ["float32"], **options)


def _lists(
    *,
    roots: Integers,
    features: Integers,
    thresholds: Array,
    comparisons: Array,
    children: Integers,
    missing_is_yes: Array,
    weights: Array,
    base: Array | None = None,
    depth: int,
    function: str,
) -> tuple[dict[str, npt.NDArray[Any]], int]:
    """Return the list attributes, and the number of targets."""
    by_node = children.reshape(-1, 2)
    comparisons, by_node = _without_sets(comparisons, by_node, missing_is_yes)
    order, tree = _in_order(roots, comparisons != LEAF, by_node, depth)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    modes, trees, leaf_weights = comparisons[order], tree[order], weights[order]
    is_leaf = modes == LEAF
    following = np.where(is_leaf[:, None], 0, place[by_node[order]])
    if function in {"sum", "mean"}:  # a weight of 0 adds nothing
        # But each target needs a weight on some leaf: onnxruntime adds base values only to targets that have one.
        is_written = is_leaf[:, None] & ((leaf_weights != 0) | (trees == 0)[:, None])
    else:
        is_written = np.broadcast_to(is_leaf[:, None], leaf_weights.shape)
    leaves, targets = is_written.nonzero()
    lists = {
        "nodes_treeids": trees,
        "nodes_nodeids": np.arange(len(order)),
        "nodes_featureids": np.where(is_leaf, 0, features[order]),
        "nodes_values": np.where(is_leaf, np.float32(0), thresholds[order]),
        "nodes_modes": MODES[modes],
        "nodes_falsenodeids": following[:, 0],
        "nodes_truenodeids": following[:, 1],
        "target_treeids": trees[leaves],
        "target_nodeids": leaves,
        "target_ids": targets,
        "target_weights": leaf_weights[leaves, targets],
    }
    if base is not None:
        lists["base_values"] = base
    if missing_is_yes.any():
        lists["nodes_missing_value_tracks_true"] = missing_is_yes[order]
    return lists, weights.shape[1]


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
