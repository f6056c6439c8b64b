"""Ensembles of decision trees, as the one operator that ONNX has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.model_export import ReadConstant
from webnn_py.onnx_export.nodes import CLASSICAL, Lists
from webnn_py.onnx_export.table import Written
from webnn_py.operators.tree_ensembles import COMPARISONS, LEAF, TREE_ENSEMBLE, Integers
from webnn_py.rewriting.composites import drawn_out
from webnn_py.rewriting.walk import rewrite

MODES: Final = np.array(
    [b"LEAF", b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"BRANCH_EQ", b"BRANCH_NEQ"]
)
"""By the numbers of comparisons."""

EQUAL: Final = COMPARISONS.index("equal")
NOT_EQUAL: Final = COMPARISONS.index("not_equal")

FUNCTIONS: Final[Mapping[str, str]] = {"sum": "SUM", "mean": "AVERAGE", "min": "MIN", "max": "MAX"}


def use_tree_regressors(graph: Graph, contents: ReadConstant) -> Graph:
    """The graph with its trees drawn out where onnxruntime means something else: the least of NaN and others is NaN."""
    if not any(node.options["function"] in {"min", "max"} for node in graph.nodes if node.operator is TREE_ENSEMBLE):
        return graph

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator is not TREE_ENSEMBLE or node.options["function"] not in {"min", "max"}:
            return None
        weights = node.operands["weights"]
        assert isinstance(weights, Constant)  # noqa: S101 - as the operator says
        return drawn_out(node, current) if np.isnan(contents(weights)).any() else None

    return rewrite(graph, replace)


def tree_ensemble(body: Body, node: Node, input: OnnxTensor, **tables: OnnxTensor) -> Written:
    """TreeEnsembleRegressor, of which each tree's nodes stand together, the root first."""
    known: dict[str, Any] = {name: body.known(tensor) for name, tensor in tables.items()}
    lists, targets = _lists(**known, **node.options)
    how = FUNCTIONS[node.options["function"]]
    options = {"n_targets": targets, "aggregate_function": how}
    return body.nodes_of(CLASSICAL, "TreeEnsembleRegressor", [input], ["float32"], Lists(lists), **options)


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
    """The attributes that are lists, and the number of targets."""
    by_node = children.reshape(-1, 2)
    comparisons, by_node = _without_sets(comparisons, by_node, missing_is_yes)
    order, tree = _in_order(roots, comparisons != LEAF, by_node, depth)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    modes, trees, said = comparisons[order], tree[order], weights[order]
    is_leaf = modes == LEAF
    following = np.where(is_leaf[:, None], 0, place[by_node[order]])
    if function in {"sum", "mean"}:  # to which 0 adds nothing
        # But of each target some leaf has to say something: onnxruntime adds base values to nothing else.
        is_said = is_leaf[:, None] & ((said != 0) | (trees == 0)[:, None])
    else:
        is_said = np.broadcast_to(is_leaf[:, None], said.shape)
    leaves, targets = is_said.nonzero()
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
        "target_weights": said[leaves, targets],
    }
    if base is not None:
        lists["base_values"] = base
    if missing_is_yes.any():
        lists["nodes_missing_value_tracks_true"] = missing_is_yes[order]
    return lists, weights.shape[1]


def _without_sets(comparisons: Array, children: Array, missing_is_yes: Array) -> tuple[Array, Array]:
    """Comparisons and children with "not equal" for "equal", and the other child, where NaN is equal to nothing.

    Of such an "equal" that leads to another one onnxruntime makes one set if both lead to leaves of the same weight.
    But it looks at the weights of the first target alone, and not at the other's way for NaN; and where leaves have no
    weight, it may end the process.
    """
    turned = (comparisons == EQUAL) & (missing_is_yes == 0)
    if not turned.any():
        return comparisons, children
    exchanged = np.where(turned[:, None], children[:, ::-1], children)
    return np.where(turned, NOT_EQUAL, comparisons), exchanged


def _in_order(
    roots: Integers, is_branch: npt.NDArray[np.bool_], children: Integers, depth: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The nodes' indices, tree by tree, each from the root down; and the number of each node's tree."""
    tree = np.zeros(len(children), np.intp)
    tree[roots] = np.arange(len(roots))
    levels = [roots]
    for _ in range(depth):
        branches = levels[-1][is_branch[levels[-1]]]
        levels.append(children[branches].ravel())
        tree[levels[-1]] = tree[branches].repeat(2)
    order = np.concatenate(levels)
    return order[np.argsort(tree[order], kind="stable")].astype(np.intp), tree
