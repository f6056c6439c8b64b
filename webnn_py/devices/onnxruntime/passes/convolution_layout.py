"""Rewrite convolutions into forms that onnxruntime is fast with: it lays images out in blocks of channels.

It pads few filters to a block, and changes the layout before and behind them: with one window, they become a product.
Channels that do not fit its layout are multiplied as a matrix, in tiles that a small image fills only partly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray
from webnn_py.core.graph import Constant, Node, Output, Value
from webnn_py.core.operators import matrix, movement
from webnn_py.devices.rewriting.reshapes import acts_as_reshape, origin_of, reshaped

BLOCK: Final = 8
"""The fewest channels of a block."""

ALIGNED: Final = 4
"""The divisor of channel counts that can be laid out in blocks, if they fill at least one block."""

TILE: Final = 16
"""The columns of a tile of a matrix."""

OF_PRODUCT: Final = {"alpha": 1.0, "beta": 1.0, "a_transpose": False, "b_transpose": True}


def relayout_convolution(node: Node, current: Node) -> Mapping[Value, Value] | None:
    """Return the replacement of a conv2d of either kind; None where it stays."""
    if not _is_plain(current):
        return None
    filters = current.operands["filter"]
    if not isinstance(filters, Constant) or not isinstance(filters.data, np.ndarray):
        return None
    made = _as_product(current, filters, filters.data) or _aligned(current, filters, filters.data)
    return None if made is None else {node.results[0]: made}


def _is_plain(node: Node) -> bool:
    """Return whether a convolution is of float32, in one group, and in ONNX's layouts."""
    options = node.options
    is_laid_out = options["input_layout"] == "nchw" and options["filter_layout"] == "oihw"
    return is_laid_out and options["groups"] == 1 and node.outputs[0].data_type == "float32"


def _as_product(node: Node, filters: Constant, data: HostArray) -> Value | None:
    """Return a convolution with one window and few filters as a product, where its image is a reshape; else None."""
    image, shape = node.operands["input"], node.outputs[0].shape
    assert isinstance(image, Value)  # noqa: S101 - for type checkers
    has_one_window = filters.descriptor.shape[2:] == image.descriptor.shape[2:] and not any(
        node.options["padding"] or ()
    )
    is_image_only_here = isinstance(image, Output) and acts_as_reshape(image.node)
    if not has_one_window or not is_image_only_here or shape[1] >= BLOCK:
        return None
    length = math.prod(filters.descriptor.shape[1:])
    operands: dict[str, Value | tuple[Value, ...]] = {
        "a": reshaped(origin_of(image), (shape[0], length), node),
        "b": _constant(data.reshape(shape[1], length), filters),
    }
    if "bias" in node.operands:
        operands["c"] = node.operands["bias"]
    output = MLOperandDescriptor("float32", shape[:2])
    product = Node(matrix.gemm, operands, OF_PRODUCT, (output,), node.label, node.drawn)
    return reshaped(product.results[0], shape, node)


def _aligned(node: Node, filters: Constant, data: HostArray) -> Value | None:
    """Return a convolution padded with zero channels, where the image is small and they allow the blocked layout."""
    count, channels, *window = filters.descriptor.shape
    more = -channels % ALIGNED
    if not more or channels < BLOCK or math.prod(node.outputs[0].shape[2:]) > TILE:
        return None
    batch, _, *sizes = node.operand("input").shape
    output = MLOperandDescriptor("float32", (batch, channels + more, *sizes))
    padding = {"beginning_padding": (0, 0, 0, 0), "ending_padding": (0, more, 0, 0), "mode": "constant", "value": 0}
    wide = Node(movement.pad, {"input": node.operands["input"]}, padding, (output,), node.label, node.drawn)
    contents = np.concatenate([data, np.zeros((count, more, *window), np.float32)], axis=1)
    operands = {**node.operands, "input": wide.results[0], "filter": _constant(contents, filters)}
    return attrs.evolve(node, operands=operands).results[0]


def _constant(data: HostArray, like: Constant) -> Constant:
    """Return a constant derived from another one; equal keys mark equal results."""
    return Constant(MLOperandDescriptor("float32", data.shape), data, like.key)
