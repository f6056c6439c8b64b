"""Conversion between data types on arrays."""

from collections.abc import Callable

import numpy as np

from webnn_py.core.descriptors import BYTES_PER_ELEMENT, MLOperandDataType
from webnn_py.core.graph import Node
from webnn_py.core.operators import conversion
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.conversion import blockwise_shapes
from webnn_py.core.operators.limits import FLOATS
from webnn_py.devices.numpy.routines.blocks import in_blocks, passes, reshaped_in_blocks
from webnn_py.devices.numpy.routines.float16 import NARROWING, float32, narrow
from webnn_py.devices.numpy.table import Array, Kernel, kernel, scalar


@kernel(conversion.cast)
def cast(node: Node) -> Kernel:
    source, target = node.operand("input").data_type, node.outputs[0].data_type
    if source == target:
        return copy
    if target == "float16":
        widened = 0 if source == "float32" else 4
        return in_blocks(node, lambda x, y: narrow(float32(x), y), allocated=widened + NARROWING)
    if source == "float16" and target == "float32":
        return in_blocks(node, lambda x, y: np.copyto(y, x))
    if source in FLOATS and target not in FLOATS:
        saturate = saturation(target, "float32")
        allocated = 4 if source == "float32" else 8
        return in_blocks(node, lambda x, y: saturate(float32(x), y), allocated=allocated)
    return copy


def copy(x: Array, y: Array) -> None:
    np.copyto(y, x, casting="unsafe")


def saturation(target: MLOperandDataType, source: str) -> Callable[[Array, Array], None]:
    """Make a function that fills integers with floats: truncated, saturated, and 0 for NaN."""
    lowest, highest = bounds_of(target, source)
    greatest = INTEGER_RANGES[target][1]

    def saturate(x: Array, y: Array) -> None:
        np.copyto(y, x.clip(lowest, highest), casting="unsafe")
        if not x.max() <= highest:  # NaN, too
            np.copyto(y, greatest, where=x > highest)
            np.copyto(y, 0, where=np.isnan(x))

    return saturate


def bounds_of(target: MLOperandDataType, source: str) -> tuple[Array, Array]:
    """Return the lowest and the highest float that an integer type holds."""
    bounds = INTEGER_RANGES[target]
    lowest, highest = (scalar(bound, source) for bound in bounds)
    return lowest, np.nextafter(highest, lowest) if int(highest) > bounds[1] else highest


@kernel(conversion.quantize_linear, work=passes(3))
def quantize_linear(node: Node) -> Kernel:
    target = node.outputs[0].data_type
    precision = exact_float(target)
    lowest, highest = bounds_of(target, precision)

    def step(x: Array, scale: Array, zero_point: Array, y: Array, quotient: Array) -> None:
        np.divide(float32(x), float32(scale), out=quotient, dtype=np.float32)
        np.rint(quotient, out=quotient)
        np.add(quotient, zero_point.astype(precision), out=quotient)
        # The bounds are integers that both types hold: nothing is left to saturate but NaN.
        quotient.clip(lowest, highest, out=quotient)
        np.copyto(y, quotient, casting="unsafe")
        if not quotient.max() <= highest:
            np.copyto(y, 0, where=np.isnan(quotient))

    blocks, ones = blockwise_shapes(node.outputs[0].shape, node.operand("scale").shape)
    widened = 4 if node.operand("input").data_type == "float16" else 0
    return reshaped_in_blocks(node, (blocks, ones, ones), blocks, step, precision, allocated=widened + 1)


def exact_float(integers: MLOperandDataType) -> str:
    """Return the smallest float type, from float32 up, that holds every value of an integer type of up to 32 bits."""
    return "float64" if BYTES_PER_ELEMENT[integers] > 2 else "float32"
