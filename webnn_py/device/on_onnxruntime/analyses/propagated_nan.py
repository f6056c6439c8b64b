"""Which values cannot be NaN without a guard's or an output's being so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from webnn_py.graph import Graph, Node, Value
from webnn_py.operators.convolution import filter_shape
from webnn_py.operators.windows import Slide, image_shape, slides

KEPT_BY: Final[Mapping[str, Sequence[str]]] = {
    "": (
        "abs",
        "add",
        "ceil",
        "clamp",
        "concat",
        "conv2d",
        "cos",
        "div",
        "erf",
        "exp",
        "expand",
        "floor",
        "gelu",
        "gemm",
        "hard_sigmoid",
        "hard_swish",
        "identity",
        "leaky_relu",
        "linear",
        "log",
        "matmul",
        "max",
        "min",
        "mul",
        "neg",
        "pad",
        "reciprocal",
        "reduce_mean",
        "reduce_sum",
        "relu",
        "reshape",
        "reverse",
        "round_even",
        "sigmoid",
        "sin",
        "softmax",
        "softplus",
        "split",
        "sqrt",
        "sub",
        "tanh",
        "tile",
        "transpose",
    ),
    "input": ("batch_normalization", "layer_normalization", "prelu"),
}
"""The operators of which some element is NaN if one of an operand is; of which operand, "" for any."""


def noticed(graph: Graph, is_guarded: Callable[[Node], bool]) -> frozenset[Value]:
    """The values of float32 that may only be NaN if an output of the graph is, or what a guarded operator is given.

    Args:
        graph: the graph.
        is_guarded: whether NaN in the operands of a node is noticed there.
    """
    uses: dict[Value, list[tuple[Node, str]]] = defaultdict(list)
    for node in graph.nodes:
        for name, operand in node.operands.items():
            for value in operand if isinstance(operand, tuple) else (operand,):
                uses[value].append((node, name))
    found = set(graph.outputs.values())
    for node in reversed(graph.nodes):
        for value in node.results:
            if any(_tells(user, name, found, is_guarded) for user, name in uses[value]):
                found.add(value)
    return frozenset(value for value in found if value.descriptor.data_type == "float32")


def _tells(user: Node, operand: str, found: set[Value], is_guarded: Callable[[Node], bool]) -> bool:
    """Whether NaN in an operand is noticed at a node."""
    name = user.operator.name
    if any(value.descriptor.data_type != "float32" for value in user.results):
        return False
    if is_guarded(user):
        return True
    if not found.issuperset(user.results):
        return False
    if name in KEPT_BY[""] and (name != "conv2d" or _reads_all(user)):
        return True
    return name in KEPT_BY.get(operand, ())


def _reads_all(node: Node) -> bool:
    """Whether every element of the images of a convolution is in a window."""
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
