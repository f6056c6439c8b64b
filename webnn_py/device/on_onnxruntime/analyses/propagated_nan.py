"""Values whose NaN a guard or an output of the graph shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from webnn_py.graph import Graph, Node, Value
from webnn_py.operators.convolution import conv2d, filter_shape
from webnn_py.operators.windows import Slide, image_shape, slides


def values_with_visible_nan(graph: Graph, is_guarded: Callable[[Node], bool]) -> frozenset[Value]:
    """Return the float32 values of which NaN reaches an output of the graph, or the input of a guarded operator.

    Args:
        graph: the graph.
        is_guarded: whether NaN in the operands of a node is detected there.
    """
    uses: dict[Value, list[tuple[Node, str]]] = defaultdict(list)
    for node in graph.nodes:
        for name, operand in node.operands.items():
            for value in operand if isinstance(operand, tuple) else (operand,):
                uses[value].append((node, name))
    found = set(graph.outputs.values())
    for node in reversed(graph.nodes):
        for value in node.results:
            if any(_shows_nan(reader, name, found, is_guarded) for reader, name in uses[value]):
                found.add(value)
    return frozenset(value for value in found if value.descriptor.data_type == "float32")


def _shows_nan(reader: Node, operand: str, found: set[Value], is_guarded: Callable[[Node], bool]) -> bool:
    """Return whether NaN in an operand of a node is detected there or further on."""
    if any(value.descriptor.data_type != "float32" for value in reader.results):
        return False
    if is_guarded(reader):
        return True
    if not found.issuperset(reader.results) or operand not in reader.operator.nan_operands:
        return False
    return reader.operator is not conv2d or _reads_all(reader)


def _reads_all(node: Node) -> bool:
    """Return whether every element of the images of a convolution is in a window."""
    options = node.options
    _, _, *sizes = image_shape(node.operand("input").shape, options["input_layout"])
    _, _, *window = filter_shape(node.operand("filter").shape, options["filter_layout"])
    return all(
        _covers(slide) for slide in slides(sizes, window, options["padding"], options["strides"], options["dilations"])
    )


def _covers(slide: Slide) -> bool:
    last = slide.size + slide.begin + slide.end - slide.reach
    if slide.dilation > 1:
        return slide.stride == 1 and slide.dilation <= last + 1
    return slide.stride <= slide.window and last % slide.stride <= slide.end
