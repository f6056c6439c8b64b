"""Gathering and scattering. Indices that are out of range, which onnxruntime refuses, are clamped before."""

from collections.abc import Sequence

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import indexing
from webnn_py.onnx_export.body import BOOL, Array, Body, OnnxTensor
from webnn_py.onnx_export.table import rules


def in_range(
    body: Body, indices: OnnxTensor, sizes: Sequence[int], *, is_coordinates: bool = False
) -> OnnxTensor | Array:
    """Return indices in range, in a data type that ONNX takes; of coordinates, with a size for each."""
    highest = np.array(sizes if is_coordinates else sizes[0], np.int64) - 1
    known = body.known(indices)
    data_type = "int64" if is_coordinates or indices.data_type == "uint32" else indices.data_type
    if known is not None and np.all(known <= highest) and np.all(known.astype(np.int64) >= -highest - 1):
        return indices if data_type == indices.data_type else known.astype(data_type)
    x = body.cast(indices, data_type)
    bounds = np.asarray(-highest - 1, data_type), np.asarray(highest, data_type)
    for comparison, bound in zip(("Less", "Greater"), bounds, strict=True):
        x = body.node("Where", body.node(comparison, x, bound, data_type=BOOL), bound, x, data_type=data_type)
    return x


def _along_axis(
    body: Body, node: Node, operator: str, input: OnnxTensor, indices: OnnxTensor, *updates: OnnxTensor
) -> OnnxTensor:
    axis = node.options["axis"]
    return body.twin(operator, input, in_range(body, indices, [input.shape[axis]]), *updates, axis=axis)


def _at_coordinates(
    body: Body, node: Node, operator: str, input: OnnxTensor, indices: OnnxTensor, *updates: OnnxTensor
) -> OnnxTensor:
    within = in_range(body, indices, input.shape[: indices.shape[-1]], is_coordinates=True)
    return body.twin(operator, input, within, *updates)


rules(
    _along_axis,
    {
        indexing.gather: "Gather",
        indexing.gather_elements: "GatherElements",
        indexing.scatter_elements: "ScatterElements",
    },
)
rules(_at_coordinates, {indexing.gather_nd: "GatherND", indexing.scatter_nd: "ScatterND"})
