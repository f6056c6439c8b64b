"""Capabilities of GPUs: data types, operators, the longest operand."""

from functools import cache, partial
from typing import Any

import wgpu

from webnn_py.core.descriptors import DATA_TYPES, FOUR_BITS, MAX_DIMENSION, MLOperandDataType
from webnn_py.core.device.backend import Capabilities, Claim
from webnn_py.core.operators.conversion import dequantize_linear
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.wgpu import kernels  # noqa: F401 - enters every kernel into the table
from webnn_py.devices.wgpu.records.buffer import GRAIN
from webnn_py.devices.wgpu.records.table import find


def longest_operand(device: wgpu.GPUDevice) -> int:
    """Return the most bytes that an operand may have."""
    limits: Any = device.limits
    longest: int = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
    # A byte less than what fits: web-platform-tests take a byte more for a whole number of elements that does not fit.
    return min(longest // GRAIN * GRAIN - 1, MAX_DIMENSION)


@cache
def capabilities_of(longest: int, *, shader_int64: bool) -> Capabilities:
    """One object for all devices that can do the same: limits are kept for each."""
    long_types = ("int64", "uint64")
    data_types = tuple(item for item in DATA_TYPES if shader_int64 or item not in long_types)
    return Capabilities(
        partial(_supports, data_types),
        data_types,
        max_byte_length=longest,
    )


def _supports(data_types: tuple[MLOperandDataType, ...], operator: Operator[..., Any]) -> Claim:
    if operator is dequantize_linear:
        packed_too = (*data_types, *FOUR_BITS)
        return dict.fromkeys(operator.limits, data_types) | {"input": packed_too, "zero_point": packed_too}
    return data_types if find(operator) is not None else ()
