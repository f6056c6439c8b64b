"""A session of onnxruntime with the buffers that are bound to its inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import numpy as np
import onnxruntime

from webnn_py.core.device.backend import HostArray, Storage


class HostBuffer:
    """The memory of a buffer: a numpy array, and an onnxruntime tensor over the same bytes.

    Attributes:
        array: the contents.
        value: onnxruntime's tensor over the same bytes.
        bound_to: the bindings that hold it, which must release it when it is freed.
    """

    __slots__ = ("array", "bound_to", "value")

    def __init__(self, array: HostArray) -> None:
        self.array = array
        self.value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self.bound_to: set[Binding] = set()

    def bind_input(self, binding: onnxruntime.IOBinding, name: str) -> None:
        """Let a session read it."""
        binding.bind_ortvalue_input(name, self.value)

    def bind_output(self, binding: onnxruntime.IOBinding, name: str) -> None:
        """Let a session write it."""
        binding.bind_ortvalue_output(name, self.value)

    def unbind(self) -> None:
        """Make every binding that holds it release all its buffers."""
        for binding in list(self.bound_to):
            binding.unbind()

    @property
    def nbytes(self) -> int:
        """The size of the contents in bytes."""
        return self.array.nbytes


MOST_SPARE: Final = 2**26
"""The most bytes of memory that are kept for the next writes."""

Names = Mapping[str, str]
"""The session's names of a graph's inputs or outputs, by the graph's names."""

Kind = tuple[np.dtype[Any], tuple[int, ...]]
"""Data type and shape."""


class SpareBuffers:
    """Memory that writes have replaced, kept for the next writes: the system provides fresh pages slowly."""

    def __init__(self) -> None:
        self._buffers: dict[Kind, list[HostBuffer]] = {}
        self._byte_length = 0

    def copy_of(self, array: HostArray) -> HostBuffer:
        """Return a buffer with the contents of an array."""
        spare = self._buffers.get((array.dtype, array.shape))
        if not spare:
            return HostBuffer(array.copy())
        buffer = spare.pop()
        self._byte_length -= buffer.nbytes
        np.copyto(buffer.array, array)
        return buffer

    def give(self, buffer: HostBuffer) -> None:
        """Keep a buffer that is no longer read, unless that exceeds the limit."""
        if self._byte_length + buffer.nbytes > MOST_SPARE:
            buffer.unbind()
            return
        self._byte_length += buffer.nbytes
        self._buffers.setdefault((buffer.array.dtype, buffer.array.shape), []).append(buffer)

    def drop(self, like: HostBuffer) -> None:
        """Release all spare buffers of a shape and data type; later writes allocate new ones if they need them."""
        for buffer in self._buffers.pop((like.array.dtype, like.array.shape), ()):
            self._byte_length -= buffer.nbytes
            buffer.unbind()


class BindableBuffer(Protocol):
    """The memory of a buffer, which sessions bind."""

    bound_to: set[Binding]
    """The bindings that hold it, which must release it when it is freed."""

    def bind_input(self, binding: onnxruntime.IOBinding, name: str) -> None:
        """Let a session read it."""

    def bind_output(self, binding: onnxruntime.IOBinding, name: str) -> None:
        """Let a session write it."""


Buffers = Mapping[str, BindableBuffer]
"""Buffers by the graph's names of its inputs or outputs."""


class Binding:
    """The buffers that a session reads and writes.

    Args:
        binding: onnxruntime's binding.
        names: the session's names of the graph's inputs, and of its outputs.
        guard: the name of the guard output, and the buffer that it is written to.

    Attributes:
        binding: onnxruntime's binding.
        native: its C++ object, for :attr:`BoundSession.compute`.
        inputs: the buffers that are bound to the graph's inputs.
        outputs: the buffers that are bound to its outputs.
        version: changes with the buffers.
    """

    def __init__(
        self, binding: onnxruntime.IOBinding, names: tuple[Names, Names], guard: tuple[str, HostBuffer] | None
    ) -> None:
        self.binding = binding
        self.native: Any = binding._iobinding
        self._names = names
        self._guard = guard
        self.inputs: dict[str, BindableBuffer] = {}
        self.outputs: dict[str, BindableBuffer] = {}
        self.version = 0
        self._bind_guard()

    def holds(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> bool:
        """Return whether exactly these buffers are bound."""
        for storages, bound in ((inputs, self.inputs), (outputs, self.outputs)):
            for name, storage in storages.items():
                memory = storage.memory  # not storage.data: a property costs a call
                if memory is None or bound.get(name) is not memory.data:
                    return False
        return True

    def bind(self, inputs: Buffers, outputs: Buffers) -> None:
        """Bind the buffers that the next run reads and writes."""
        names_of_inputs, names_of_outputs = self._names
        for name, buffer in inputs.items():
            if self._takes(self.inputs, name, buffer):
                buffer.bind_input(self.binding, names_of_inputs[name])
        for name, buffer in outputs.items():
            if self._takes(self.outputs, name, buffer):
                buffer.bind_output(self.binding, names_of_outputs[name])

    def bind_inputs_again(self) -> None:
        """Bind the inputs again: one that another device reads is copied when it is bound, and not at a run."""
        names, _ = self._names
        for name, buffer in self.inputs.items():
            buffer.bind_input(self.binding, names[name])

    def _takes(self, bound: dict[str, BindableBuffer], name: str, buffer: BindableBuffer) -> bool:
        """Record a buffer as bound; return False if it is bound already."""
        before = bound.get(name)
        if before is buffer:
            return False
        bound[name] = buffer
        self.version += 1
        if before is not None and before not in self.inputs.values() and before not in self.outputs.values():
            before.bound_to.discard(self)
        buffer.bound_to.add(self)
        return True

    def unbind(self) -> None:
        """Release all buffers."""
        self.version += 1
        self.binding.clear_binding_inputs()
        self.binding.clear_binding_outputs()
        for bound in (self.inputs, self.outputs):
            for buffer in bound.values():
                buffer.bound_to.discard(self)
            bound.clear()
        self._bind_guard()

    def _bind_guard(self) -> None:
        if self._guard is not None:
            name, buffer = self._guard
            buffer.bind_output(self.binding, name)


class BoundSession:
    """A session with two bindings that alternate: states and written data often alternate between two buffers.

    Args:
        session: onnxruntime's session.
        names: the session's names of the graph's inputs, and of its outputs.
        constants: the arrays of external constants, which the session reads in place.
        guard: the name of the guard output; None if the other outputs are right for all inputs.

    Attributes:
        guard: the output that is NaN where the other outputs may be wrong; None if they never are.
        bound: the binding of the next run.
        compute: runs the session, given a binding's C++ object and options.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        names: tuple[Names, Names],
        constants: Mapping[str, HostArray],
        guard: str | None,
    ) -> None:
        # The Python method checks for captured WebGPU graphs at each run, which takes as long as some small operators.
        self.compute: Callable[[Any, onnxruntime.RunOptions], None] = session._sess.run_with_iobinding
        self._constants = constants
        self.guard = guard
        self._guard_buffer = None if guard is None else HostBuffer(np.zeros((), np.float32))
        guard_output = None if guard is None or self._guard_buffer is None else (guard, self._guard_buffer)
        self.bound, self._other = (Binding(session.io_binding(), names, guard_output) for _ in range(2))

    def bind(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Bind the buffers that the next run reads and writes."""
        if self.bound.holds(inputs, outputs):
            return
        self.bound, self._other = self._other, self.bound
        if not self.bound.holds(inputs, outputs):
            self.bound.bind(_data(inputs), _data(outputs))

    def bind_as(self, other: BoundSession) -> None:
        """Bind the buffers of another session with the same inputs and outputs."""
        self.bound.bind(other.bound.inputs, other.bound.outputs)

    def run(self, options: onnxruntime.RunOptions) -> bool:
        """Run the session on its bound buffers; return whether the outputs may be wrong."""
        self.compute(self.bound.native, options)
        return self.is_doubtful()

    def is_doubtful(self) -> bool:
        """Return whether the outputs of the last run may be wrong."""
        return self._guard_buffer is not None and math.isnan(self._guard_buffer.array)

    def unbind(self) -> None:
        """Release all buffers."""
        self.bound.unbind()
        self._other.unbind()


def _data(storages: Mapping[str, Storage]) -> dict[str, BindableBuffer]:
    return {name: storage.data for name, storage in storages.items()}
