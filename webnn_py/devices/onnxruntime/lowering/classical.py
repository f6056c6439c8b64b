"""The lowering of linear models and ensembles of decision trees to ONNX's operators for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.nodes import CLASSICAL
from webnn_py.onnx_export.table import Written

MODES: Final[Mapping[str, bytes]] = {
    "lesser_or_equal": b"BRANCH_LEQ",
    "lesser": b"BRANCH_LT",
    "greater_or_equal": b"BRANCH_GTE",
    "greater": b"BRANCH_GT",
}


def linear_model(
    body: Body,
    node: Node,
    input: OnnxTensor,
    coefficients: OnnxTensor,
    intercepts: OnnxTensor | None = None,
    labels: OnnxTensor | None = None,
) -> Written:
    """Write LinearClassifier or, without labels, LinearRegressor."""
    given = {"coefficients": coefficients, "intercepts": intercepts, "classlabels_ints": labels}
    lists: dict[str, Any] = {name: body.known(tensor) for name, tensor in given.items() if tensor is not None}
    lists["coefficients"] = lists["coefficients"].ravel()
    options = {} if labels is not None else {"targets": coefficients.shape[0]}
    return _scores_and_labels(body, node, "Linear", input, lists, **options)


def tree_ensemble(body: Body, node: Node, input: OnnxTensor, **tables: OnnxTensor) -> Written:
    """Write TreeEnsembleClassifier or, without labels, TreeEnsembleRegressor."""
    known: dict[str, Any] = {name: body.known(tensor) for name, tensor in tables.items()}
    trees, features, noes, yeses, missing = known["nodes"].T
    places = np.arange(len(trees))
    is_leaf = yeses == places
    leaves, targets = np.broadcast_to(is_leaf[:, None], known["weights"].shape).nonzero()
    prefix = "class" if "labels" in known else "target"
    lists = {
        "nodes_treeids": trees,
        "nodes_nodeids": places,
        "nodes_featureids": features,
        "nodes_values": known["thresholds"],
        "nodes_modes": np.where(is_leaf, b"LEAF", MODES[node.options["comparison"]]),
        "nodes_falsenodeids": np.where(is_leaf, 0, noes),
        "nodes_truenodeids": np.where(is_leaf, 0, yeses),
        "nodes_missing_value_tracks_true": missing,
        f"{prefix}_treeids": trees[leaves],
        f"{prefix}_nodeids": leaves,
        f"{prefix}_ids": targets,
        f"{prefix}_weights": known["weights"][leaves, targets],
    }
    if "base" in known:
        lists["base_values"] = known["base"]
    if "labels" in known:
        return _scores_and_labels(body, node, "TreeEnsemble", input, lists | {"classlabels_int64s": known["labels"]})
    function = "SUM" if node.options["function"] == "sum" else "AVERAGE"
    options = {"n_targets": node.outputs[0].shape[1], "aggregate_function": function}
    return _scores_and_labels(body, node, "TreeEnsemble", input, lists, **options)


def _scores_and_labels(
    body: Body, node: Node, model: str, input: OnnxTensor, lists: dict[str, Array], **options: Any
) -> Written:
    """Write the classifier or regressor of a model, whichever the node is; ONNX's labels come first, and are int64."""
    options["post_transform"] = node.options["post_transform"]
    if len(node.outputs) == 1:
        return body.nodes_outputs(f"{model}Regressor", [input], ["float32"], domain=CLASSICAL, lists=lists, **options)
    outputs = ["int64", "float32"]
    labels, scores = body.nodes_outputs(
        f"{model}Classifier", [input], outputs, domain=CLASSICAL, lists=lists, **options
    )
    return [scores, body.cast(labels, node.outputs[1].data_type)]
