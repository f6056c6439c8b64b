"""Refusals by browsers that their limits do not explain, by name: a profile's table lists those that it has."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

import attrs

from webnn_py.core.graph import Constant, Node

ErrorName = Literal["TypeError", "NotSupportedError", "InvalidStateError", "UnknownError"]
When = Literal["call", "build"]


@attrs.frozen
class BrowserRule:
    """A rule about nodes of some operators.

    Attributes:
        operators: their Python names.
        refuses: whether it refuses a node of one of them.
        reason: why, in a sentence's second half.
        when: whether the call is refused or the build of a graph that has the node.
        error: the name of the error.
    """

    operators: tuple[str, ...]
    refuses: Callable[[Node], bool]
    reason: str
    when: When = "build"
    error: ErrorName = "NotSupportedError"


def _has_dilations(node: Node) -> bool:
    return any(size != 1 for size in node.options["dilations"] or ())


def _gives(data_type: str) -> Callable[[Node], bool]:
    return lambda node: node.outputs[0].data_type == data_type


def _computed_indices(node: Node) -> bool:
    return not isinstance(node.operands["indices"], Constant)


def _strides_beyond_sizes(node: Node) -> bool:
    return any(
        stride > size for stride, size in zip(node.options["strides"] or (), node.options["sizes"], strict=False)
    )


def _pads_otherwise(node: Node) -> bool:
    """Return whether a transposed convolution has padding other than for outputs of input size × stride."""
    top, bottom, left, right = node.options["padding"] or (0, 0, 0, 0)
    if not any((top, bottom, left, right)):
        return False
    layout, filter_layout = node.options["input_layout"], node.options["filter_layout"]
    given, made, filter_shape = node.operand("input").shape, node.outputs[0].shape, node.operand("filter").shape
    strides = node.options["strides"] or (1, 1)
    for name, stride, padding in zip("hw", strides, ((top, bottom), (left, right)), strict=True):
        total, axis = filter_shape[filter_layout.index(name)] - stride, layout.index(name)
        if padding != (total // 2, (total + 1) // 2) or made[axis] != given[axis] * stride:
            return True
    return False


RULES: Final[Mapping[str, BrowserRule]] = {
    "concat-uint64": BrowserRule(("concat",), _gives("uint64"), "inputs must not be uint64", error="UnknownError"),
    "conv-transpose-dilations-and-groups": BrowserRule(
        ("conv_transpose2d",),
        lambda node: _has_dilations(node) or node.options["groups"] != 1,
        "dilations and groups must be 1",
    ),
    "conv-transpose-padding": BrowserRule(
        ("conv_transpose2d",), _pads_otherwise, "padding must be none, or filter - stride in halves, the greater last"
    ),
    "gather-elements-computed-indices": BrowserRule(
        ("gather_elements",), _computed_indices, "indices must be a constant"
    ),
    "pad-edge": BrowserRule(
        ("pad",),
        lambda node: bool(node.options["mode"] == "edge" and node.operand("input").rank),
        "mode must not be edge",
    ),
    "pool-dilations": BrowserRule(("average_pool2d", "l2_pool2d", "max_pool2d"), _has_dilations, "dilations must be 1"),
    "prelu-wider-slope": BrowserRule(
        ("prelu",),
        lambda node: node.outputs[0].shape != node.operand("input").shape,
        "slope must be broadcastable to the shape of input",
        "call",
        "TypeError",
    ),
    "scatter-uint32": BrowserRule(
        ("scatter_elements", "scatter_nd"),
        _gives("uint32"),
        "input must not be uint32",
        error="UnknownError",
    ),
    "scatter-elements-computed-indices": BrowserRule(
        ("scatter_elements",), _computed_indices, "indices must be a constant"
    ),
    "slice-strides-beyond-sizes": BrowserRule(
        ("slice",), _strides_beyond_sizes, "a stride must not be greater than its size", "call", "TypeError"
    ),
}
"""The rules by the names that tables have."""
