"""Values whose NaN reaches a guard or an output of the graph."""

from __future__ import annotations

from collections.abc import Callable

from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.operators.convolution import conv2d, filter_shape
from webnn_py.core.operators.windows import Slide, image_shape, slides


def values_with_visible_nan(graph: Graph, is_guarded: Callable[[Node], bool]) -> frozenset[Value]:
    """Return the float32 values of which NaN reaches an output of the graph, or the input of a guarded operator.

    Args:
        graph: the graph.
        is_guarded: whether NaN in the operands of a node is detected there.
    """
    found = set(graph.outputs.values())
    for node in reversed(graph.nodes):
        for value in node.results:
            if any(reader and _shows_nan(reader, value, found, is_guarded) for reader in graph.readers.get(value, ())):
                found.add(value)
    return frozenset(value for value in found if value.descriptor.data_type == "float32")


def _shows_nan(reader: Node, value: Value, found: set[Value], is_guarded: Callable[[Node], bool]) -> bool:
    """Return whether NaN in an operand of a node is detected there or further on."""
    if any(result.descriptor.data_type != "float32" for result in reader.results):
        return False
    if is_guarded(reader):
        return True
    if not found.issuperset(reader.results):
        return False
    operands = [reader.operands.get(name) for name in reader.operator.nan_operands]
    is_propagated = any(value is one or (isinstance(one, tuple) and value in one) for one in operands)
    return is_propagated and (reader.operator is not conv2d or _reads_all(reader))


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
