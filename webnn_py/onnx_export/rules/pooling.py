"""Pooling: ONNX's, with the padding at the end that makes as many windows as are wanted."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import pooling
from webnn_py.core.operators.windows import Slide, image_shape, slides
from webnn_py.onnx_export.body import BOOL, Body, OnnxTensor
from webnn_py.onnx_export.image_layouts import channels_first, laid_out
from webnn_py.onnx_export.table import Written, rule, rules

How = Mapping[str, Any]

LONG_WINDOW: Final = 64
"""The elements of a window, along an axis, up to which it does not matter how many lie in the padding."""


def pooling_attributes(node: Node) -> How | None:
    """Return ONNX's attributes; None where it has none for these windows, or onnxruntime is slow.

    ONNX cannot have a window that lies in the padding wholly, nor padding as long as it; onnxruntime goes over all
    elements of windows that lie in the padding.
    """
    options = node.options
    sizes = image_shape(node.operand("input").shape, options["layout"])[2:]
    new_sizes = image_shape(node.outputs[0].shape, options["layout"])[2:]
    window = options["window_dimensions"] or sizes
    return _attributes(sizes, new_sizes, window, options["padding"], options["strides"], options["dilations"])


@lru_cache(256)  # a device asks several times
def _attributes(
    sizes: tuple[int, ...],
    new_sizes: tuple[int, ...],
    window: tuple[int, ...],
    padding: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
    dilations: tuple[int, ...] | None,
) -> How | None:
    along = slides(sizes, window, padding, strides, dilations)
    ends = [slide.needed_end(size) for slide, size in zip(along, new_sizes, strict=True)]
    begins = [slide.begin for slide in along]
    for slide, end, size in zip(along, ends, new_sizes, strict=True):
        is_long = slide.window > max(slide.size, LONG_WINDOW)
        if is_long or max(slide.begin, end) >= slide.window or not _have_elements(slide, size):
            return None
    return {
        "kernel_shape": list(window),
        "pads": [*begins, *ends],
        "strides": [slide.stride for slide in along],
        "dilations": [slide.dilation for slide in along],
    }


def _have_elements(slide: Slide, count: int) -> bool:
    """Return whether each window has an element in the image."""
    if (count - 1) * slide.stride - slide.begin >= slide.size:
        return False
    beginning_before = min(count, -(-slide.begin // slide.stride))
    return all(map(slide.part, range(beginning_before)))


def pooled(body: Body, node: Node, operator: str, input: OnnxTensor) -> Written:
    """Write one of ONNX's pools, in the layout of the node."""
    how = pooling_attributes(node)
    if how is None:
        return body.decomposed(node, {"input": input})
    how = {**how, "p": 2} if operator == "LpPool" else how
    if body.computes(operator, input.data_type) and node.options["layout"] == "nchw":
        return body.twin(operator, input, **how)
    wide = body.computed(operator, channels_first(body, input, node.options["layout"]))
    output = laid_out(body, body.node(operator, wide, **how), node.options["layout"])
    return body.cast(output, input.data_type)


rules(pooled, {pooling.average_pool2d: "AveragePool", pooling.l2_pool2d: "LpPool"})


@rule(pooling.max_pool2d)
def max_pool2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write MaxPool, and NaN, which onnxruntime skips, where the mean of what is not negative is NaN."""
    how = pooling_attributes(node)
    layout = node.options["layout"]
    if how is None or input.data_type not in ("float32", "float16", "int8", "uint8"):
        return body.decomposed(node, {"input": input})
    if input.data_type in ("int8", "uint8"):
        return laid_out(body, body.twin("MaxPool", channels_first(body, input, layout), **how), layout)
    wide = body.cast(channels_first(body, input, layout), "float32")
    greatest = body.node("MaxPool", wide, **how)
    mean = body.node("AveragePool", body.node("Relu", wide), **how)
    has_nan = body.node("IsNaN", mean, data_type=BOOL)
    nan = np.array(np.nan, np.float32)
    output = laid_out(body, body.node("Where", has_nan, nan, greatest, data_type="float32"), layout)
    return body.cast(output, input.data_type)
