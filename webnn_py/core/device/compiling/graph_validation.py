"""Graphs that the specification accepts but no device computes: ``build()`` refuses them on every device.

Devices count places in images in 32 bits, and ONNX Runtime checks only at run time that groups divide channels.
"""

from collections.abc import Iterator
from typing import Any, Final

from webnn_py.core.descriptors import MAX_DIMENSION
from webnn_py.core.graph import Graph, Node
from webnn_py.core.operators import convolution, pooling
from webnn_py.core.operators.convolution import filter_shape
from webnn_py.core.operators.windows import image_shape, slides

WITH_WINDOWS: Final = frozenset(
    {
        convolution.conv2d,
        convolution.conv_transpose2d,
        pooling.average_pool2d,
        pooling.l2_pool2d,
        pooling.max_pool2d,
    }
)


class NotComputableError(Exception):
    """A node that no device computes."""


def validate_graph(graph: Graph) -> None:
    """Refuse a graph with a node that no device computes.

    Raises:
        NotComputableError: the groups of a transposed convolution do not divide its input channels; or the windows of
            a convolution or pooling operator, or the image with its padding, span more than ``MAX_DIMENSION`` elements.
    """
    for node in graph.nodes:
        if node.operator in WITH_WINDOWS:
            for problem in _problems(node):
                raise NotComputableError(f"{node}: {problem}")


def _problems(node: Node) -> Iterator[str]:
    options: Any = node.options
    is_transposed = node.operator is convolution.conv_transpose2d
    layout = options["input_layout" if "input_layout" in options else "layout"]
    _, channels, *sizes = image_shape(node.operand("input").shape, layout)
    if "filter" in node.operands:
        _, _, *window = filter_shape(node.operand("filter").shape, options["filter_layout"])
    else:
        window = options["window_dimensions"] or sizes
    if is_transposed and channels % options["groups"]:
        yield (
            f"the number of groups is {options['groups']}; it must be a divisor of the number of input channels, "
            f"{channels}"
        )
    _, _, *counts = image_shape(node.outputs[0].shape, layout)
    along = slides(sizes, window, options["padding"], options["strides"], options["dilations"])
    for axis, slide, count in zip(("rows", "columns"), along, counts, strict=True):
        last = (slide.size if is_transposed else count) - 1
        spanned = last * slide.stride + slide.reach
        if is_transposed:
            extents = {"what the elements of the input spread to, before padding is cut off, spans": spanned}
        else:
            padded = slide.begin + slide.size + slide.end
            extents = {"with its padding the image has": padded, "the windows, one after the other, span": spanned}
        for words, extent in extents.items():
            if extent > MAX_DIMENSION:
                yield f"{words} {extent} {axis}; it must be at most {MAX_DIMENSION}"
