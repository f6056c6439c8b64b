"""Fold multiplications and additions of constants before and behind a convolution into its filter and bias.

This removes batch normalizations and scales from each run: the filter is multiplied once, when the graph is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Output, Value
from webnn_py.core.graph_rewriting import rewrite
from webnn_py.core.operators.casting import cast_number

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

Operands = Mapping[str, Value | tuple[Value, ...]]

Contents = Callable[[Constant], NDArray[Any]]
"""Returns the array of a constant."""

LEAST: Final = float(np.finfo(np.float32).smallest_normal)
STATISTICS: Final = ("mean", "variance", "scale", "bias")
BINARY: Final = frozenset({"add", "div", "mul", "sub"})


def folded(graph: Graph, contents: Contents) -> Graph:
    """Return the graph with batch normalizations, factors and summands of convolutions folded into filters and biases.

    Folds where all constants are of float32, each one number or one number for each channel, where the value in between
    has no other reader, and where no element of the filter overflows or underflows. Afterwards an element may be
    finite only where the convolution, or its input times a factor, overflowed float32 before.

    Args:
        graph: the graph to rewrite.
        contents: returns the values of constants.
    """
    if not any(node.operator.name == "conv2d" for node in graph.nodes):
        return graph

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        name = node.operator.name
        if name == "conv2d":
            if not graph.has_one_reader(node.operands["input"]):
                return None
            one = _scaled_before(current, contents)
        elif name == "batch_normalization" or name in BINARY:
            place = "input" if name not in BINARY else "b" if isinstance(node.operands["a"], Constant) else "a"
            if not graph.has_one_reader(node.operands[place]):
                return None
            one = _scaled_behind(current, place, contents)
        else:
            return None
        return None if one is None else {node.results[0]: one.results[0]}

    return rewrite(graph, replace)


@attrs.frozen
class _Affine:
    """An affine map of each channel: a factor and a summand.

    Attributes:
        factor: one for all channels, or one for each; None for 1.
        summand: one for all channels, or one for each; None for 0.
    """

    factor: Doubles | None
    summand: Doubles | None


def _scaled_behind(node: Node, place: str, contents: Contents) -> Node | None:
    """Return the convolution with the node that scales its result folded in; None where it cannot be folded."""
    value = node.operands[place]
    if not isinstance(value, Output) or value.node.operator.name != "conv2d":
        return None
    convolution = value.node
    if value.descriptor != node.outputs[0] or not _is_of_constants(convolution):
        return None
    axis = 1 if convolution.options["input_layout"] == "nchw" else 3
    if place == "input":
        affine = _normalization(node, axis, contents)
    elif _is_of_whole_numbers(convolution, contents):
        return None
    else:
        affine = _binary(node, place, axis, contents)
    return None if affine is None else _as_one(convolution, node, affine, contents)


def _is_of_constants(convolution: Node) -> bool:
    """Return whether a convolution is of float32, and its filter and bias are constants."""
    others = [convolution.operands.get(name) for name in ("filter", "bias")]
    are_constants = all(item is None or isinstance(item, Constant) for item in others)
    return are_constants and convolution.outputs[0].data_type == "float32"


def _is_of_whole_numbers(convolution: Node, contents: Contents) -> bool:
    """Return whether the filter has whole numbers only: sums of quantized numbers are exact, and must stay so."""
    filters = contents(convolution.operands["filter"]).reshape(-1)  # type: ignore[arg-type]
    return float(filters[0]).is_integer() and bool((filters == np.rint(filters)).all())


def _normalization(node: Node, axis: int, contents: Contents) -> _Affine | None:
    """Return the affine map of a batch normalization; None unless it is along the channels and of constants."""
    constants = [node.operands.get(name) for name in STATISTICS]
    if node.options["axis"] != axis or not all(item is None or isinstance(item, Constant) for item in constants):
        return None
    mean, variance, scale, bias = (
        contents(item).astype(np.float64) if isinstance(item, Constant) else np.array(otherwise)
        for item, otherwise in zip(constants, (0, 1, 1, 0), strict=True)
    )
    epsilon = float(cast_number(node.options["epsilon"], "float32"))
    with np.errstate(all="ignore"):  # results that are not finite are rejected
        factor = scale / np.sqrt(variance + epsilon)
        return _Affine(factor, bias - mean * factor)


def _binary(node: Node, place: str, axis: int, contents: Contents) -> _Affine | None:
    """Return the affine map of a binary operator with one number, or one for each channel; None for other operands."""
    numbers = _by_channel(node.operands["b" if place == "a" else "a"], axis, contents)
    if numbers is None:
        return None
    name, is_first = node.operator.name, place == "a"
    if name == "mul":
        return _Affine(numbers, None)
    if name == "div":
        with np.errstate(all="ignore"):  # results that are not finite are rejected
            return _Affine(1 / numbers, None) if is_first else None
    if name == "add" or is_first:
        return _Affine(None, numbers if name == "add" else -numbers)
    return _Affine(np.array(-1.0), numbers)


def _by_channel(value: object, axis: int, contents: Contents) -> Doubles | None:
    """Return the elements of a constant of one element or of one for each channel of images; None for other values."""
    if not isinstance(value, Constant) or value.descriptor.rank > 4:
        return None
    shape = (1,) * (4 - value.descriptor.rank) + value.descriptor.shape
    if value.descriptor.element_count != shape[axis]:
        return None
    return contents(value).reshape(-1).astype(np.float64)


def _as_one(convolution: Node, node: Node, affine: _Affine, contents: Contents) -> Node | None:
    """Return the convolution with an affine map of its result folded in; None where filter or bias would overflow."""
    bias = convolution.operands.get("bias")
    filters = convolution.operands["filter"]
    assert isinstance(filters, Constant)  # noqa: S101 - was looked at
    new_bias = None if bias is None else contents(bias).astype(np.float64)  # type: ignore[arg-type]
    with np.errstate(all="ignore"):  # results that are not finite are rejected
        if affine.factor is not None and new_bias is not None:
            new_bias = new_bias * affine.factor
        if affine.summand is not None:
            new_bias = affine.summand if new_bias is None else new_bias + affine.summand
        floats = None if new_bias is None else new_bias.astype(np.float32)
    if floats is not None and not np.isfinite(floats).all():
        return None
    if affine.factor is not None:
        scaled = _scaled(convolution, "o", affine.factor, contents)
        if scaled is None:
            return None
        filters = scaled
    operands = {"input": convolution.operands["input"], "filter": filters}
    if floats is not None:
        of_each = np.empty(
            convolution.outputs[0].shape[1 if convolution.options["input_layout"] == "nchw" else 3], "f4"
        )
        of_each[...] = floats
        operands["bias"] = _constant(of_each)
    drawn = (*convolution.drawn, *node.drawn)
    return _with(convolution, operands, node.label or convolution.label, drawn)


def _scaled_before(convolution: Node, contents: Contents) -> Node | None:
    """Return the convolution with the factor of its input folded into its filter; None where there is none to fold."""
    value = convolution.operands["input"]
    if not isinstance(value, Output) or value.node.operator.name not in {"div", "mul"}:
        return None
    scaling = value.node
    place = "b" if isinstance(scaling.operands["a"], Constant) else "a"
    images = scaling.operands[place]
    is_alike = isinstance(images, Value) and images.descriptor == value.descriptor
    if not is_alike or not _is_of_constants(convolution) or _is_of_whole_numbers(convolution, contents):
        return None
    axis = 1 if convolution.options["input_layout"] == "nchw" else 3
    affine = _binary(scaling, place, axis, contents)
    if affine is None or affine.factor is None:
        return None
    factor = affine.factor
    if factor.size > 1 and convolution.options["groups"] != 1:
        return None
    filters = _scaled(convolution, "i", factor, contents)
    if filters is None:
        return None
    operands = {**convolution.operands, "input": images, "filter": filters}
    drawn = (*scaling.drawn, *convolution.drawn)
    return _with(convolution, operands, convolution.label, drawn)


def _with(convolution: Node, operands: Operands, label: str, drawn: tuple[int, ...]) -> Node:
    """Return a convolution of other operands."""
    return Node(convolution.operator, operands, convolution.options, convolution.outputs, label, drawn)


def _scaled(convolution: Node, axis: str, factor: Doubles, contents: Contents) -> Constant | None:
    """Return the filter times factors along one of its axes; None where an element overflows or underflows."""
    filters = convolution.operands["filter"]
    assert isinstance(filters, Constant)  # noqa: S101 - was looked at
    axes: str = convolution.options["filter_layout"]
    numbers = contents(filters).reshape(filters.descriptor.shape)
    with np.errstate(all="ignore"):  # results that are not finite are rejected
        factors: Floats = factor.astype(np.float32).reshape([-1 if name == axis else 1 for name in axes])
        new: Floats = numbers * factors
    magnitudes = np.abs(new)
    if not math.isfinite(np.maximum.reduce(magnitudes, None)):  # the maximum propagates NaN
        return None
    may_lack_digits = np.minimum.reduce(magnitudes, None) < LEAST
    if may_lack_digits and ((magnitudes < LEAST) & (numbers != 0) & (factors != 0)).any():
        return None
    key = None if filters.key is None else ("factors", filters.key, factors.shape, factors.tobytes())
    return _constant(new, key)


def _constant(array: Floats, key: Hashable | None = None) -> Constant:
    return Constant(MLOperandDescriptor("float32", array.shape), array, key)
