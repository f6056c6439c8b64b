"""The requirements that marked tests have of a context, checked against what its backend reports of the device."""

from webnn_py import MLContext
from webnn_py.core.descriptors import DATA_TYPES

MOST_BYTES = 2**31 - 1
"""No operand is longer, on any device."""


def longest_operand(context: MLContext) -> int:
    """The most bytes that an operand may take: on a GPU one less than those of a binding, in whole units of 32."""
    if context.backend.name != "wgpu":
        return MOST_BYTES
    limits = context.backend.limits
    binding = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
    return min(binding // 32 * 32 - 1, MOST_BYTES)


def data_types(context: MLContext) -> list[str]:
    """The data types that buffers may have."""
    has_long = context.backend.name != "wgpu" or "shader-int64" in context.backend.features
    return [name for name in DATA_TYPES if has_long or name not in {"int64", "uint64"}]
