"""The lowering of linear models and normalization to ONNX's operators of classical machine learning."""

from __future__ import annotations

from typing import Any

from webnn_py.graph import Node
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.nodes import CLASSICAL
from webnn_py.onnx_export.table import Written


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
    return scores_and_labels(body, node, "Linear", input, lists, **options)


def scores_and_labels(
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


def normalizer(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write Normalizer."""
    return body.nodes_outputs("Normalizer", [input], ["float32"], domain=CLASSICAL, norm=node.options["norm"])
