"""Refusals by browsers that their limits do not explain, by name: a profile's table lists those that it has."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

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


def _takes(operand: str, data_type: str) -> Callable[[Node], bool]:
    def takes(node: Node) -> bool:
        value = node.operands[operand]
        values = value if isinstance(value, tuple) else (value,)
        return any(item.descriptor.data_type == data_type for item in values)

    return takes


def _computed_indices(node: Node) -> bool:
    return not isinstance(node.operands["indices"], Constant)


def _strides_beyond_sizes(node: Node) -> bool:
    return any(
        stride > size for stride, size in zip(node.options["strides"] or (), node.options["sizes"], strict=False)
    )


def _pads_otherwise(node: Node) -> bool:
    """Return whether a transposed convolution has padding other than for outputs of input size × stride."""
    padding = tuple(node.options["padding"] or (0, 0, 0, 0))
    if padding == (0, 0, 0, 0):
        return False
    filter_shape, layout = node.operand("filter").shape, node.options["filter_layout"]
    sizes = (filter_shape[layout.index("h")], filter_shape[layout.index("w")])
    strides = node.options["strides"] or (1, 1)
    same: list[int] = []
    for size, stride in zip(sizes, strides, strict=True):
        total = size - stride
        same += (total // 2, (total + 1) // 2)
    layout = node.options["input_layout"]
    given, made = node.operand("input").shape, node.outputs[0].shape
    times = zip((layout.index("h"), layout.index("w")), strides, strict=True)
    return padding != tuple(same) or any(made[axis] != given[axis] * stride for axis, stride in times)


RULES: Final[Mapping[str, BrowserRule]] = {
    "concat-uint64": BrowserRule(
        ("concat",), _takes("inputs", "uint64"), "inputs must not be uint64", error="UnknownError"
    ),
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
        _takes("input", "uint32"),
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


def rules_of(names: Any) -> Mapping[str, tuple[BrowserRule, ...]]:
    """Return the rules of some names, by the operator that they are about.

    Raises:
        KeyError: there is no rule of a name.
    """
    found: dict[str, tuple[BrowserRule, ...]] = {}
    for rule in (RULES[name] for name in names):
        for operator in rule.operators:
            found[operator] = (*found.get(operator, ()), rule)
    return found
