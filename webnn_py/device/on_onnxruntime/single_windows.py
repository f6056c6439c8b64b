"""Convolutions of one window with few filters, of what is an image only for them, as products.

Where onnxruntime lays images out in blocks of channels, few filters are padded to a block, and the layout changes
before them and behind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_onnxruntime.reshaping import is_reshape, origin_of, reshaped
from webnn_py.graph import Constant, Node, Output, Value
from webnn_py.operators import convolution, matrix

BLOCK: Final = 8
"""The fewest channels of a block."""

OPTIONS: Final = {"alpha": 1.0, "beta": 1.0, "a_transpose": False, "b_transpose": True}


def as_product(node: Node, current: Node) -> Mapping[Value, Value] | None:
    """What takes the place of such a convolution, else None."""
    if node.operator is not convolution.conv2d or not _has_one_window(current):
        return None
    image, filters = current.operands["input"], current.operands["filter"]
    is_image_only_here = isinstance(image, Output) and is_reshape(image.node)
    if not is_image_only_here or not isinstance(filters, Constant) or not isinstance(filters.data, np.ndarray):
        return None
    batch, count, *_ = current.outputs[0].shape
    length = math.prod(filters.descriptor.shape[1:])
    columns = MLOperandDescriptor("float32", (count, length))
    operands: dict[str, Value | tuple[Value, ...]] = {
        "a": reshaped(origin_of(image), (batch, length), node),
        "b": Constant(columns, filters.data.reshape(columns.shape), filters.key),
    }
    if "bias" in current.operands:
        operands["c"] = current.operands["bias"]
    output = MLOperandDescriptor("float32", (batch, count))
    product = Node(matrix.gemm, operands, OPTIONS, (output,), node.label, node.drawn)
    return {node.results[0]: reshaped(product.results[0], current.outputs[0].shape, node)}


def _has_one_window(node: Node) -> bool:
    """Whether a convolution of float32 makes one element of each image with each of few filters."""
    options, (output,) = node.options, node.outputs
    is_plain = options["groups"] == 1 and options["input_layout"] == "nchw" and options["filter_layout"] == "oihw"
    if output.data_type != "float32" or not is_plain or any(options["padding"] or ()):
        return False
    return node.operand("filter").shape[2:] == node.operand("input").shape[2:] and output.shape[1] < BLOCK
