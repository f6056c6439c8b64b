"""Which max pools read finite numbers only, as long as the graph's inputs are not too large."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs
import numpy as np

from webnn_py.graph import Constant, Graph, Input, Node, Output, Value
from webnn_py.onnx_export.model_export import ReadConstant

LEAST: Final = 2.0**20
"""How large inputs must be allowed to be, so that those of usual size never are too large."""

HIGHEST: Final = 2.0**60
"""Of which the square is a number of float32, which sums of squares are compared with."""

MOST: Final = 2.0**120
"""Below this values and sums on the way to them are finite in float32, however they are rounded."""

MOST_WEIGHTS: Final = 2**18
"""Elements of filters that are looked at, which takes 0.1 ms."""

ROUNDING: Final = 1.02
"""By what sums of so many elements are larger at most than what they should be."""

KEEPS: Final = frozenset(
    {
        "abs",
        "concat",
        "identity",
        "max",
        "max_pool2d",
        "min",
        "neg",
        "relu",
        "reshape",
        "reverse",
        "slice",
        "transpose",
    }
)
"""Operators of which no element is larger than all of the operands'."""

ADDS: Final = frozenset({"add", "sub"})


@attrs.frozen
class Bounded:
    """What needs no look.

    Attributes:
        pools: the max pools that read finite numbers only, if the inputs are not too large.
        inputs: the inputs that they depend on.
        largest: the root of the sum of the squares that each of those may have.
    """

    pools: frozenset[Node] = frozenset()
    inputs: frozenset[Value] = frozenset()
    largest: float = LEAST

    @classmethod
    def of(cls, graph: Graph, is_guarded: Callable[[Node], bool], contents: ReadConstant) -> Bounded:
        """The max pools of a graph whose inputs are fewer elements than what they read themselves.

        Args:
            graph: the graph.
            is_guarded: whether what a node reads would be looked at otherwise.
            contents: gives the values of constants.
        """
        pools = [node for node in graph.nodes if node.operator.name == "max_pool2d" and is_guarded(node)]
        bounds = _bounds(graph, _cone(pools), contents) if pools else {}
        pools = [node for node in pools if node.operands["input"] in bounds]
        cone = _cone(pools)
        inputs = {value for value in cone if isinstance(value, Input)}
        if sum(value.descriptor.element_count for value in inputs) >= sum(
            node.operand("input").element_count for node in pools
        ):
            return cls()
        # Inputs so many times as large make nothing larger than so many times.
        times = MOST / max(bounds[value] for value in cone if value in bounds)
        return cls(frozenset(pools), frozenset(inputs), min(LEAST * 2.0 ** math.floor(math.log2(times)), HIGHEST))


def _cone(nodes: Iterable[Node]) -> frozenset[Value]:
    """All that some nodes depend on."""
    found: set[Value] = set()
    stack = [value for node in nodes for value in node.inputs]
    while stack:
        value = stack.pop()
        if value not in found:
            found.add(value)
            if isinstance(value, Output):
                stack.extend(value.node.inputs)
    return frozenset(found)


def _bounds(graph: Graph, wanted: frozenset[Value], contents: ReadConstant) -> Mapping[Value, float]:
    """What the elements of values of float32 cannot exceed, of those that are wanted, if far below infinity."""
    floats = (value for value in graph.inputs.values() if value.descriptor.data_type == "float32")
    # A sum of squares in float32 is off by some parts in a thousand.
    bounds: dict[Value, float] = dict.fromkeys(floats, 2 * LEAST)
    weights = 0
    for node in graph.nodes:
        if wanted.isdisjoint(node.results) or any(item.descriptor.data_type != "float32" for item in node.results):
            continue
        if node.operator.name == "conv2d":
            weights += node.operand("filter").element_count
            bound = _of_convolution(node, bounds, contents) if weights <= MOST_WEIGHTS else np.inf
        else:
            bound = _of_operands(node, [bounds.get(value, np.inf) for value in node.inputs])
        if bound < MOST:
            bounds.update(dict.fromkeys(node.results, ROUNDING * bound))
    return bounds


def _of_operands(node: Node, bounds: list[float]) -> float:
    name = node.operator.name
    if name in ADDS:
        return sum(bounds)
    if name == "leaky_relu":
        return max(abs(float(node.options["alpha"])), 1.0) * bounds[0]
    return max(bounds, default=np.inf) if name in KEEPS else np.inf


def _of_convolution(node: Node, bounds: Mapping[Value, float], contents: ReadConstant) -> float:
    """The largest sum of what one window and filter give, all of one sign."""
    source, filters, bias = (node.operands.get(name) for name in ("input", "filter", "bias"))
    bound = bounds.get(source, math.inf)  # type: ignore[arg-type]  # there, and no sequence
    if bound == math.inf or not isinstance(filters, Constant):
        return math.inf
    if bias is not None and not isinstance(bias, Constant):
        return math.inf
    axis: int = node.options["filter_layout"].index("o")
    others = tuple([place for place in range(4) if place != axis])
    factors = np.abs(contents(filters)).reshape(filters.descriptor.shape)
    sums = bound * factors.sum(axis=others, dtype=np.float64)  # in which none is too large
    greatest = float((sums if bias is None else sums + np.abs(contents(bias))).max())
    return greatest if math.isfinite(greatest) else math.inf
