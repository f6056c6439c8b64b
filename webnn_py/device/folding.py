"""Batch normalizations of convolutions, folded into the filters: one multiplication of each, once and for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.shared_constants import digest
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators.casting import cast_number
from webnn_py.rewriting import rewrite

Doubles = NDArray[np.float64]

Contents = Callable[[Constant], NDArray[Any]]
"""Gives the array of a constant."""

LEAST: Final = float(np.finfo(np.float32).smallest_normal)
STATISTICS: Final = ("mean", "variance", "scale", "bias")


def folded(graph: Graph, contents: Contents) -> Graph:
    """The graph with each batch normalization in the filter and bias of the convolution that is its alone.

    Done where all of them are constants of float32 and no element of the filter becomes too large, or so small that it
    loses digits. Only an element of the convolution that is out of float32's range may be within it afterwards.

    Args:
        graph: what to rewrite.
        contents: gives the values of constants.
    """
    if not any(node.operator.name == "batch_normalization" for node in graph.nodes):
        return graph
    uses = Counter([value for node in graph.nodes for value in node.inputs])  # a generator takes twice as long
    uses.update(graph.outputs.values())

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator.name != "batch_normalization" or uses[node.operands["input"]] != 1:  # type: ignore[index]
            return None
        convolution = _convolution_before(current)
        if convolution is None:
            return None
        one = _as_one(convolution, current, contents)
        return None if one is None else {node.results[0]: one.results[0]}

    return rewrite(graph, replace)


def _convolution_before(node: Node) -> Node | None:
    """The convolution whose result is normalized by the channel, if all but its input are constants of float32."""
    value = node.operands["input"]
    if not isinstance(value, Output) or value.node.operator.name != "conv2d":
        return None
    convolution = value.node
    channels = 1 if convolution.options["input_layout"] == "nchw" else 3
    others = [node.operands.get(name) for name in STATISTICS]
    others += [convolution.operands.get(name) for name in ("filter", "bias")]
    are_constants = all(item is None or isinstance(item, Constant) for item in others)
    is_wide = value.descriptor.data_type == "float32"
    return convolution if are_constants and is_wide and node.options["axis"] == channels else None


def _as_one(convolution: Node, normalization: Node, contents: Contents) -> Node | None:
    """The convolution with the normalization in its filter and bias; None where an element of those cannot be so."""

    def doubles(node: Node, name: str, otherwise: float) -> Doubles:
        constant = node.operands.get(name)
        if not isinstance(constant, Constant):
            return np.array(otherwise)
        return contents(constant).reshape(constant.descriptor.shape).astype(np.float64)

    mean, variance, scale, bias = (
        doubles(normalization, name, otherwise) for name, otherwise in zip(STATISTICS, (0, 1, 1, 0), strict=True)
    )
    filters = contents(convolution.operands["filter"]).reshape(convolution.operand("filter").shape)  # type: ignore[arg-type]
    epsilon = float(cast_number(normalization.options["epsilon"], "float32"))
    sizes = [size if axis == "o" else 1 for axis, size in zip(_filter_axes(convolution), filters.shape, strict=True)]
    with np.errstate(all="ignore"):  # what is not finite is not taken
        factor = scale / np.sqrt(variance + epsilon)
        factors = factor.astype(np.float32).reshape(sizes)
        new_filter = filters * factors
        new_bias = (bias + (doubles(convolution, "bias", 0) - mean) * factor).astype(np.float32)
    magnitudes = np.abs(new_filter)
    if not (np.isfinite(magnitudes.max(initial=0)) and np.isfinite(new_bias).all()):  # the greatest is NaN if one is
        return None
    may_lack_digits = magnitudes.min(initial=LEAST) < LEAST
    if may_lack_digits and ((magnitudes < LEAST) & (filters != 0) & (factors != 0)).any():
        return None
    operands = {
        "input": convolution.operands["input"],
        "filter": _constant(new_filter, _key_of(convolution.operands["filter"], factors)),
        "bias": _constant(new_bias),
    }
    label = normalization.label or convolution.label
    return attrs.evolve(convolution, operands=operands, label=label, drawn=(*convolution.drawn, *normalization.drawn))


def _filter_axes(convolution: Node) -> str:
    axes: str = convolution.options["filter_layout"]
    return axes


def _key_of(filter_: object, factors: NDArray[np.float32]) -> bytes | None:
    """What tells the filter times factors from others, as what told the filter; None where nothing did."""
    key = filter_.key if isinstance(filter_, Constant) else None
    return None if key is None else digest("factors", key, factors.shape, factors.tobytes())


def _constant(array: NDArray[np.float32], key: bytes | None = None) -> Constant:
    return Constant(MLOperandDescriptor("float32", array.shape), array, key)
