"""A session of onnxruntime with the buffers that are bound to its inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import onnxruntime

from webnn_py.device.backend import HostArray


class HostBuffer:
    """The memory of a buffer: an array, and the same for onnxruntime.

    Attributes:
        array: the contents.
        value: onnxruntime's tensor over the same bytes.
        bound_to: the sessions that it is bound to, which must forget it when it is freed.
    """

    __slots__ = ("array", "bound_to", "value")

    def __init__(self, array: HostArray) -> None:
        self.array = array
        self.value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self.bound_to: set[BoundSession] = set()

    def unbind(self) -> None:
        """Have every session let go of it."""
        for session in list(self.bound_to):
            session.unbind()

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return self.array.nbytes


MOST_SPARE: Final = 2**26
"""Bytes that are kept for the next writes."""

Kind = tuple[np.dtype[Any], tuple[int, ...]]
"""Data type and shape."""


class SpareBuffers:
    """Memory that writes have replaced, for the next writes: the system hands out fresh pages slowly."""

    def __init__(self) -> None:
        self._buffers: dict[Kind, list[HostBuffer]] = {}
        self._byte_length = 0

    def copy_of(self, array: HostArray) -> HostBuffer:
        """A buffer with the contents of an array."""
        spare = self._buffers.get((array.dtype, array.shape))
        if not spare:
            return HostBuffer(array.copy())
        buffer = spare.pop()
        self._byte_length -= buffer.nbytes
        np.copyto(buffer.array, array)
        return buffer

    def give(self, buffer: HostBuffer) -> None:
        """Keep a buffer that nobody reads any more, unless there are too many."""
        if self._byte_length + buffer.nbytes > MOST_SPARE:
            buffer.unbind()
            return
        self._byte_length += buffer.nbytes
        self._buffers.setdefault((buffer.array.dtype, buffer.array.shape), []).append(buffer)

    def drop(self, like: HostBuffer) -> None:
        """Let go of all of a kind, which the next writes make anew if they need them."""
        for buffer in self._buffers.pop((like.array.dtype, like.array.shape), ()):
            self._byte_length -= buffer.nbytes
            buffer.unbind()


Buffers = Iterable[tuple[str, HostBuffer]]
"""Buffers with the names of the session's inputs or outputs."""


class BoundSession:
    """A session with its bindings.

    Args:
        session: onnxruntime's.
        constants: what it reads where they lie.

    Attributes:
        guard: its output that is NaN where the others may be wrong; None if they never are.
    """

    def __init__(
        self, session: onnxruntime.InferenceSession, constants: Mapping[str, HostArray], guard: str | None
    ) -> None:
        self._session = session
        self._constants = constants
        self._binding = session.io_binding()
        self.guard = guard
        self._guard_buffer = HostBuffer(np.zeros((), np.float32))
        self._inputs: dict[str, HostBuffer] = {}
        self._outputs: dict[str, HostBuffer] = {}
        self._bind_guard()

    def bind(self, inputs: Buffers, outputs: Buffers) -> None:
        """Let the next run read and write these buffers."""
        for name, buffer in inputs:
            if self._takes(self._inputs, name, buffer):
                self._binding.bind_ortvalue_input(name, buffer.value)
        for name, buffer in outputs:
            if self._takes(self._outputs, name, buffer):
                self._binding.bind_ortvalue_output(name, buffer.value)

    def bind_as(self, other: BoundSession) -> None:
        """Let the next run read and write what is bound to another session of the same inputs and outputs."""
        self.bind(other._inputs.items(), other._outputs.items())

    def _takes(self, bound: dict[str, HostBuffer], name: str, buffer: HostBuffer) -> bool:
        """Whether a buffer is not the one that is bound already; if so, note that it will be."""
        before = bound.get(name)
        if before is buffer:
            return False
        bound[name] = buffer
        if before is not None and before not in self._inputs.values() and before not in self._outputs.values():
            before.bound_to.discard(self)
        buffer.bound_to.add(self)
        return True

    def run(self, options: onnxruntime.RunOptions) -> bool:
        """Compute what is bound from what is bound; whether that may not be what the graph means."""
        self._session.run_with_iobinding(self._binding, options)
        return self.guard is not None and math.isnan(self._guard_buffer.array)

    def unbind(self) -> None:
        """Let go of all buffers."""
        self._binding.clear_binding_inputs()
        self._binding.clear_binding_outputs()
        for bound in (self._inputs, self._outputs):
            for buffer in bound.values():
                buffer.bound_to.discard(self)
            bound.clear()
        self._bind_guard()

    def _bind_guard(self) -> None:
        if self.guard is not None:
            self._binding.bind_ortvalue_output(self.guard, self._guard_buffer.value)
