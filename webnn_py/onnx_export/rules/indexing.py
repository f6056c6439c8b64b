"""Gathering and scattering. Indices that are out of range, which onnxruntime refuses, are clamped before."""

from collections.abc import Sequence

import numpy as np

from webnn_py.graph import Node
from webnn_py.onnx_export.body import BOOL, Array, Body, OnnxTensor
from webnn_py.onnx_export.table import rule
from webnn_py.operators import indexing


def in_range(
    body: Body, indices: OnnxTensor, sizes: Sequence[int], *, is_coordinates: bool = False
) -> OnnxTensor | Array:
    """Indices in range, in a data type that ONNX takes; of coordinates, with a size for each."""
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


@rule(indexing.gather)
def gather(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor) -> OnnxTensor:
    """Gather."""
    axis = node.options["axis"]
    return body.twin("Gather", input, in_range(body, indices, [input.shape[axis]]), axis=axis)


@rule(indexing.gather_elements)
def gather_elements(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor) -> OnnxTensor:
    """GatherElements."""
    axis = node.options["axis"]
    return body.twin("GatherElements", input, in_range(body, indices, [input.shape[axis]]), axis=axis)


@rule(indexing.gather_nd)
def gather_nd(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor) -> OnnxTensor:
    """GatherND."""
    within = in_range(body, indices, input.shape[: indices.shape[-1]], is_coordinates=True)
    return body.twin("GatherND", input, within)


@rule(indexing.scatter_elements)
def scatter_elements(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor) -> OnnxTensor:
    """ScatterElements."""
    axis = node.options["axis"]
    within = in_range(body, indices, [input.shape[axis]])
    return body.twin("ScatterElements", input, within, updates, axis=axis)


@rule(indexing.scatter_nd)
def scatter_nd(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor) -> OnnxTensor:
    """ScatterND."""
    within = in_range(body, indices, input.shape[: indices.shape[-1]], is_coordinates=True)
    return body.twin("ScatterND", input, within, updates)
