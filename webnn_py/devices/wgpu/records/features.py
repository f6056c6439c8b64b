"""Features of adapters that kernels depend on."""

from __future__ import annotations

import attrs

from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.devices.wgpu.records.element import Element, element


@attrs.frozen
class Features:
    """The features of an adapter that kernels depend on, and the user's permissions.

    Attributes:
        gpu: the kind of GPU, if its kernels' speeds were measured: "hopper"; empty for others.
        processors: the number of processors of a GPU that was not measured, roughly.
        float16_accumulation: whether products of float16 matrices may be summed in float16.
    """

    shader_f16: bool = False
    shader_int64: bool = False
    subgroups: bool = False
    least_subgroup: int = 4
    max_storage_buffers: int = 8
    max_workgroup_storage: int = 16384
    max_invocations: int = 256
    gpu: str = ""
    processors: int = 16
    float16_accumulation: bool = False

    def element(self, data_type: MLOperandDataType) -> Element:
        """Return the storage of a data type."""
        return element(data_type, shader_f16=self.shader_f16)
