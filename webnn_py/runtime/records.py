"""Small frozen records that environments and sessions hand out."""

from __future__ import annotations

from typing import Literal

import attrs

from webnn_py.core.api.context import MLContext
from webnn_py.core.device.backend import BackendInfo
from webnn_py.memory_by_label import LabelledMemory

TensorLocation = Literal["cpu", "gpu-buffer", "ml-tensor"]
"""Where a tensor's data are, by ONNX Runtime's names: on the host, in a WebGPU buffer, or in an ``MLTensor`` of a
device that has no GPU buffers. Both of the latter are on the device, and mean just that as a preference."""


@attrs.frozen
class EnvironmentDevice:
    """The device that an environment runs on.

    Attributes:
        id: the context's number in its environment: 0.
        context: the context, for what is not a session's, such as building a graph.
        info: where it really runs.
    """

    id: int
    context: MLContext
    info: BackendInfo


@attrs.frozen
class EnvironmentStatistics:
    """A look at an environment; works after it was closed, too.

    Attributes:
        sessions: sessions that are not released.
        live_buffers: buffers that have memory on the device, those of contexts that are ending included.
        live_bytes: bytes on the device.
        host_copies: how often bytes were copied between host and device since the environment was made.
        by_label: what lives under each label on the device that is open, as
            :func:`~webnn_py.memory_by_label.memory_by_label` returns it.
    """

    sessions: int
    live_buffers: int
    live_bytes: int
    host_copies: int
    by_label: tuple[LabelledMemory, ...] = attrs.field(repr=False)


@attrs.frozen
class TensorDescriptor:
    """The data type and shape of an input or output of a session.

    Attributes:
        data_type: the data type, of one that WebNN lacks the model's name for it.
        shape: the dimensions; a string is one that the feeds decide, "?" one without a name. None when not even the
            rank is known.
    """

    data_type: str
    shape: tuple[int | str, ...] | None

    @property
    def is_fixed(self) -> bool:
        """Return whether every dimension is known."""
        return self.shape is not None and len(self.fixed_shape) == len(self.shape)

    @property
    def fixed_shape(self) -> tuple[int, ...]:
        """The dimensions that are known."""
        return tuple(size for size in self.shape or () if isinstance(size, int))

    def __str__(self) -> str:
        return f"{self.data_type} {'of any shape' if self.shape is None else list(self.shape)}"
