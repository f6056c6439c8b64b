"""The lowering of ensembles of decision trees to ONNX's operator for them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.devices.composites.tree_ensemble import COMPARISONS
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.nodes import CLASSICAL
from webnn_py.onnx_export.table import Written

MODES: Final = {comparison: mode.encode() for mode, comparison in COMPARISONS.items()}


def tree_ensemble(body: Body, node: Node, input: OnnxTensor, **tables: OnnxTensor) -> Written:
    """Write TreeEnsembleRegressor."""
    known: dict[str, Any] = {name: body.known(tensor) for name, tensor in tables.items()}
    trees, features, noes, yeses, missing = known["nodes"].T
    weights = known["weights"]
    places = np.arange(len(trees))
    is_leaf = yeses == places
    leaves, targets = np.broadcast_to(is_leaf[:, None], weights.shape).nonzero()
    lists = {
        "nodes_treeids": trees,
        "nodes_nodeids": places,
        "nodes_featureids": features,
        "nodes_values": known["thresholds"],
        "nodes_modes": np.where(is_leaf, b"LEAF", MODES[node.options["comparison"]]),
        "nodes_falsenodeids": np.where(is_leaf, 0, noes),
        "nodes_truenodeids": np.where(is_leaf, 0, yeses),
        "nodes_missing_value_tracks_true": missing,
        "target_treeids": trees[leaves],
        "target_nodeids": leaves,
        "target_ids": targets,
        "target_weights": weights[leaves, targets],
    }
    return body.nodes_outputs(
        "TreeEnsembleRegressor", [input], ["float32"], domain=CLASSICAL, lists=lists, n_targets=weights.shape[1]
    )
