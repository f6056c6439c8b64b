"""Fold the batch normalization of a convolution into its filter and bias.

This removes it from each run: the filter is multiplied once, when the graph is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Output, Value
from webnn_py.core.graph_rewriting import rewrite
from webnn_py.core.operators import convolution, normalization
from webnn_py.core.operators.casting import cast_number

Doubles = NDArray[np.float64]

Contents = Callable[[Constant], NDArray[Any]]
"""Returns the array of a constant."""

LEAST: Final = float(np.finfo(np.float32).smallest_normal)


def folded(graph: Graph, contents: Contents) -> Graph:
    """Return the graph with batch normalizations of convolutions folded into filters and biases.

    Folds where all constants are of float32, where the value in between has no other reader, and where no element of
    the filter overflows or underflows. Afterwards an element may be finite only where the convolution overflowed
    float32 before.

    Args:
        graph: the graph to rewrite.
        contents: returns the values of constants.
    """

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator is not normalization.batch_normalization or not graph.has_one_reader(node.operands["input"]):
            return None
        one = _folded(current, contents)
        return None if one is None else {node.results[0]: one.results[0]}

    return rewrite(graph, replace)


def _folded(node: Node, contents: Contents) -> Node | None:
    """Return the convolution with the normalization of its result folded in; None where it cannot be folded."""
    value = node.operands["input"]
    if not isinstance(value, Output) or value.node.operator is not convolution.conv2d:
        return None
    convolved = value.node
    filters, bias = convolved.operands["filter"], convolved.operands.get("bias")
    axis = 1 if convolved.options["input_layout"] == "nchw" else 3
    if value.descriptor.data_type != "float32" or node.options["axis"] != axis:
        return None
    if not isinstance(filters, Constant) or not (bias is None or isinstance(bias, Constant)):
        return None
    affine = _affine_map(node, contents)
    if affine is None:
        return None
    factor, summand = affine
    scaled = _scaled(filters, convolved.options["filter_layout"].index("o"), factor, contents)
    with np.errstate(all="ignore"):  # results that are not finite are rejected
        new_bias = (summand if bias is None else contents(bias).astype(np.float64) * factor + summand).astype("f4")
    if scaled is None or not np.isfinite(new_bias).all():
        return None
    operands = {
        "input": convolved.operands["input"],
        "filter": scaled,
        "bias": Constant(MLOperandDescriptor("float32", new_bias.shape), new_bias),
    }
    label, drawn = node.label or convolved.label, (*convolved.drawn, *node.drawn)
    return Node(convolved.operator, operands, convolved.options, convolved.outputs, label, drawn)


def _affine_map(node: Node, contents: Contents) -> tuple[Doubles, Doubles] | None:
    """Return the factor and the summand of each channel of a batch normalization; None unless it is of constants."""
    constants = [node.operands.get(name) for name in ("mean", "variance", "scale", "bias")]
    if not all(item is None or isinstance(item, Constant) for item in constants):
        return None
    mean, variance, scale, bias = (
        contents(item).astype(np.float64) if isinstance(item, Constant) else np.array(otherwise)
        for item, otherwise in zip(constants, (0, 1, 1, 0), strict=True)
    )
    epsilon = float(cast_number(node.options["epsilon"], "float32"))
    with np.errstate(all="ignore"):  # results that are not finite are rejected
        factor: Doubles = scale / np.sqrt(variance + epsilon)
        return factor, bias - mean * factor


def _scaled(filters: Constant, axis: int, factor: Doubles, contents: Contents) -> Constant | None:
    """Return a filter times a factor for each position on an axis; None where an element overflows or underflows."""
    numbers = contents(filters).reshape(filters.descriptor.shape)
    with np.errstate(all="ignore"):  # results that are not finite are rejected
        factors = factor.astype(np.float32).reshape([-1 if place == axis else 1 for place in range(4)])
        new = numbers * factors
    magnitudes = np.abs(new)
    if not math.isfinite(np.maximum.reduce(magnitudes, None)):  # the maximum propagates NaN
        return None
    may_lack_digits = np.minimum.reduce(magnitudes, None) < LEAST
    if may_lack_digits and ((magnitudes < LEAST) & (numbers != 0) & (factors != 0)).any():
        return None
    key = None if filters.key is None else ("factors", filters.key, factors.shape, factors.tobytes())
    return Constant(MLOperandDescriptor("float32", new.shape), new, key)
