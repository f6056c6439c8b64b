"""Graphs that the specification accepts but no device computes: ``build()`` refuses them on every device.

Devices count places in images in 32 bits, and ONNX Runtime checks only at run time that groups divide channels.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from webnn_py.core.descriptors import MAX_DIMENSION
from webnn_py.core.graph import Graph, Node
from webnn_py.core.operators.convolution import filter_shape
from webnn_py.core.operators.windows import Slide, image_shape, slides

SMALL: Final = 2**14
"""Nothing spans more than ``MAX_DIMENSION`` elements if sizes, paddings, strides and dilations are less than this."""


class NotComputableError(Exception):
    """A node that no device computes."""


def validate_graph(graph: Graph) -> None:
    """Refuse a graph with a node that no device computes.

    Raises:
        NotComputableError: the groups of a transposed convolution do not divide its input channels; or the windows of
            a convolution or pooling operator, or the image with its padding, span more than ``MAX_DIMENSION`` elements.
    """
    for node in graph.nodes:
        problem = PROBLEMS.get(node.operator.name)
        if problem is not None:
            for words in problem(node):
                raise NotComputableError(f"{node}: {words}")


def _of_convolution(node: Node) -> Iterator[str]:
    if _is_small(node):
        return
    options: Any = node.options
    _, _, *window = filter_shape(node.operand("filter").shape, options["filter_layout"])
    yield from _of_windows(_slides(node, options["input_layout"], window), _output_sizes(node, options["input_layout"]))


def _of_transposed_convolution(node: Node) -> Iterator[str]:
    options: Any = node.options
    _, channels, *window = filter_shape(node.operand("filter").shape, options["filter_layout"])
    groups = options["groups"]
    if channels % groups:
        yield f"the number of groups is {groups}; it must be a divisor of the number of input channels, {channels}"
    if _is_small(node):
        return
    for name, slide in _slides(node, options["input_layout"], window).items():
        spread = (slide.size - 1) * slide.stride + slide.reach
        if spread > MAX_DIMENSION:
            yield _too_many(name, spread, "what the elements of the input spread to, before padding is cut off, spans")


def _of_pooling(node: Node) -> Iterator[str]:
    if _is_small(node):
        return
    options: Any = node.options
    layout = options["layout"]
    window = options["window_dimensions"] or image_shape(node.operand("input").shape, layout)[2:]
    yield from _of_windows(_slides(node, layout, window), _output_sizes(node, layout))


def _is_small(node: Node) -> bool:
    """Return whether all numbers are so small that nothing can span too much; most nodes need no other check."""
    shapes = [*[value.descriptor.shape for value in node.inputs], *[output.shape for output in node.outputs]]
    given = [node.options.get(name) or () for name in ("padding", "strides", "dilations", "window_dimensions")]
    return all(number < SMALL for number in chain(*shapes, *given))


def _of_windows(along: Mapping[str, Slide], counts: tuple[int, int]) -> Iterator[str]:
    for (name, slide), count in zip(along.items(), counts, strict=True):
        padded = slide.begin + slide.size + slide.end
        spanned = (count - 1) * slide.stride + slide.reach
        if padded > MAX_DIMENSION:
            yield _too_many(name, padded, "with its padding the image has")
        if spanned > MAX_DIMENSION:
            yield _too_many(name, spanned, "the windows, one after the other, span")


def _too_many(name: str, count: int, words: str) -> str:
    return f"{words} {count} {name}; it must be at most {MAX_DIMENSION}"


def _slides(node: Node, layout: Any, window: Any) -> dict[str, Slide]:
    options: Any = node.options
    sizes = image_shape(node.operand("input").shape, layout)[2:]
    along = slides(sizes, window, options["padding"], options["strides"], options["dilations"])
    return dict(zip(("rows", "columns"), along, strict=True))


def _output_sizes(node: Node, layout: Any) -> tuple[int, int]:
    _, _, height, width = image_shape(node.outputs[0].shape, layout)
    return height, width


PROBLEMS: Final[Mapping[str, Callable[[Node], Iterator[str]]]] = {
    "average_pool2d": _of_pooling,
    "conv2d": _of_convolution,
    "conv_transpose2d": _of_transposed_convolution,
    "l2_pool2d": _of_pooling,
    "max_pool2d": _of_pooling,
}
"""The reasons why no device computes an operator, in words, by its Python name."""
