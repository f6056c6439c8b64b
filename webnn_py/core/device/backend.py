"""The ``Backend`` protocol, which devices implement, and the records that it exchanges."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, Protocol, runtime_checkable

import attrs
import numpy as np
import trio

from webnn_py.core.descriptors import DATA_TYPES, MAX_DIMENSION, MLOperandDataType, MLOperandDescriptor, stored
from webnn_py.core.device.records.failure import Failure
from webnn_py.core.graph import Graph
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.limits import MAX_RANK

HostArray = np.ndarray[tuple[Any, ...], np.dtype[Any]]
"""A contiguous array on the host, with a descriptor's data type and shape."""


MLDeviceType = Literal["cpu", "gpu", "npu"]
"""A kind of processor (webnn issue 836)."""


@attrs.frozen
class BackendInfo:
    """The device, adapter and driver that a context runs on.

    Attributes:
        name: the device's name, as ``create_context(backend=…)`` takes it.
        adapter: the processor's name, as given by its driver or the system.
        driver: the library or driver that runs it, with its version.
        features: optional features of the adapter.
        limits: its limits, by WebGPU's names; bytes or counts.
        device_types: the kinds of processors that it may use, the one that does most of the work first.
    """

    name: str
    adapter: str
    driver: str
    features: tuple[str, ...] = ()
    limits: Mapping[str, int] = attrs.field(factory=dict)
    device_types: tuple[MLDeviceType, ...] = ("cpu",)

    def __str__(self) -> str:
        return f"{self.name} ({self.adapter}, {self.driver})"


Claim = tuple[MLOperandDataType, ...] | Mapping[str, tuple[MLOperandDataType, ...]]
"""The data types of all operands and outputs of an operator, or of each row of its limits."""


@attrs.frozen(eq=False)
class Capabilities:
    """The abilities of a backend, both for ``op_support_limits()`` and for validation.

    Attributes:
        supports: returns the data types in which the device runs an operator itself, for all its operands and outputs,
            or for each row of the operator's limits; none when it does not. The operator is then expanded into others,
            if those are supported. A device whose ``dequantizeLinear`` reads packed 4-bit constants, two elements in a
            byte, has "int4" and "uint4" in the rows ``input`` and ``zero_point`` of its claim.
        data_types: the data types of inputs, constants and outputs.
        max_rank: the highest rank.
        max_byte_length: the most bytes that one operand or buffer may take.
        preferred_input_layout: the layout of images that runs fastest.
        packed: the 4-bit data types that scripts may use in this context; none unless requested.
    """

    supports: Callable[[Operator[..., Any]], Claim]
    data_types: tuple[MLOperandDataType, ...] = DATA_TYPES
    max_rank: int = MAX_RANK
    max_byte_length: int = MAX_DIMENSION
    preferred_input_layout: Literal["nchw", "nhwc"] = "nchw"
    packed: tuple[MLOperandDataType, ...] = ()


class Memory:
    """A piece of a device's memory with a reference count; the last release frees it, unless it is borrowed."""

    __slots__ = ("__weakref__", "borrowed", "byte_length", "data", "holders")

    def __init__(self, data: Any, byte_length: int, *, borrowed: bool = False) -> None:
        self.data = data
        self.byte_length = byte_length
        self.holders = 0
        self.borrowed = borrowed


class Storage:
    """The memory of an ``MLBuffer`` on the device.

    Attributes:
        descriptor: data type and shape; for 4-bit elements, those of the bytes that contain them.
        memory: the memory, once allocated and until released.
        failure: the reason why the last step that should have written it did not; None if its data are valid.
        lent: while the memory is lent to a user, the event that is set when it is returned.
        number: its number for observers; 0 if none has asked for it.
        label: the buffer's label; "" for none.
    """

    __slots__ = ("descriptor", "failure", "label", "lent", "memory", "number")

    def __init__(self, descriptor: MLOperandDescriptor, label: str = "") -> None:
        self.descriptor = stored(descriptor)
        self.label = label
        self.memory: Memory | None = None
        self.failure: Failure | None = None
        self.lent: trio.Event | None = None
        self.number = 0

    @property
    def is_borrowed(self) -> bool:
        """Return whether the memory is a user's, who may destroy it at any time."""
        return self.memory is not None and self.memory.borrowed

    @property
    def data(self) -> Any:
        """The backend's own handle of the memory.

        Raises:
            MemoryError: no memory is allocated.
        """
        if self.memory is None:
            raise MemoryError("the buffer has no memory on the device")
        return self.memory.data


class CompiledGraph(Protocol):
    """A graph compiled for a device; ``byte_length`` is the memory that it does not share.

    It may also have ``in_place``: the outputs that may be in the buffer of an input, by name: that input.
    """

    @property
    def byte_length(self) -> int:
        """The bytes of constants and intermediates that live as long as the graph."""


SHARED_MEMORY_ATTRIBUTE: Final = "shared"
"""The attribute of a compiled graph, if it has one, with the memory that it shares with others, each piece once: it is
counted once, and freed after the last graph."""


class Backend(Protocol):
    """A device, seen from the device timeline.

    Only the device timeline calls the methods, one at a time; each returns its result or an awaitable of it. An
    exception rejects the promise, or marks the buffers that the method should have written.
    """

    info: BackendInfo
    capabilities: Capabilities
    overlapping: bool
    """Whether any of the methods returns ``InFlight``: the device itself keeps the order of submitted work."""
    lost: Callable[[str], None]
    """Set by the owner; the backend calls it in the trio thread when it detects that the device is lost."""

    def allocate(self, descriptor: MLOperandDescriptor) -> Any | Awaitable[Any]:
        """Allocate memory with all bytes zero and return the handle."""

    def write(self, storage: Storage, data: HostArray) -> Awaitable[None] | None:
        """Make ``data``, which belongs to the device from now on, the contents of ``storage``."""

    def read(self, storage: Storage) -> HostArray | Awaitable[HostArray]:
        """Copy the contents into a new array."""

    def free(self, data: Any) -> Awaitable[None] | None:
        """Free the memory of a handle, after all work that was submitted before has finished."""

    def compile(self, graph: Graph) -> CompiledGraph | Awaitable[CompiledGraph]:
        """Compile a graph of supported operators; constants that are ``Storage`` may be released afterwards."""

    def dispatch(
        self, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> Awaitable[None] | None:
        """Run a graph: read ``inputs``, write all of ``outputs``."""

    def release_graph(self, compiled: Any) -> Awaitable[None] | None:
        """Free the memory of a graph, after all work that was submitted before has finished."""

    def finish(self) -> Awaitable[None] | None:
        """Wait until all submitted work has finished."""

    def flush(self) -> None:
        """Submit batched work, since nothing follows for now, or something long does."""

    def stop(self) -> None:
        """End a running dispatch before its next kernel if possible, since the context is lost."""

    def close(self) -> None:
        """Close the device; the last release has run."""


OnProgress = Callable[[int, int], object]
"""(compiled kernels, all kernels) → nothing."""


@runtime_checkable
class TellsProgress(Protocol):
    """A backend that reports the progress of a build."""

    def compile_telling(self, graph: Graph, progress: OnProgress) -> Awaitable[CompiledGraph]:
        """Compile a graph as ``compile`` does; call ``progress`` in the event loop's thread from time to time."""


@runtime_checkable
class CountsItself(Protocol):
    """A backend with counts of its own: of compiled code that it keeps, of the adapter's memory."""

    def statistics(self) -> Mapping[str, int]:
        """Return the counts as they are now, by names that the device documents."""


@attrs.frozen
class KernelNode:
    """The record of a node that a kernel computes.

    Attributes:
        operator: its name in the specification.
        label: the label that the script gave; for nodes that a device creates, that of the replaced node.
        flops: its arithmetic operations, as the device counts them; if several kernels compute the node together, they
            are counted for the kernel that moves most bytes.
    """

    operator: str
    label: str
    flops: int


@attrs.frozen
class KernelTiming:
    """The duration of one kernel of a dispatch.

    Attributes:
        name: the kernel's name, for people to read.
        operators: the operators that it computes, by their names in the specification; none for a mere copy.
        start_ns: its start: on the clock of ``time.perf_counter_ns()`` for "host", relative to the start of the
            dispatch's first kernel for "gpu".
        duration_ns: its duration.
        bytes_moved: the bytes that it reads and writes, with each operand and result counted once and whole.
        clock: the clock that measured it.
        nodes: the nodes that it computes, in the order in which they run.
    """

    name: str
    operators: tuple[str, ...]
    start_ns: int
    duration_ns: int
    bytes_moved: int
    clock: Literal["gpu", "host"]
    nodes: tuple[KernelNode, ...] = ()

    @property
    def flops(self) -> int:
        """The arithmetic operations of its nodes."""
        return sum(node.flops for node in self.nodes)


@runtime_checkable
class StagesWrites(Protocol):
    """A backend that copies the data of a write into memory from which it can write at once."""

    def stage(self, array: HostArray) -> Any:
        """Return a copy of a contiguous array, for :meth:`Backend.write`; it has ``nbytes``."""


@runtime_checkable
class TimesKernels(Protocol):
    """A backend that can measure the duration of each kernel of a dispatch."""

    def dispatch_timed(
        self, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> list[KernelTiming] | Awaitable[list[KernelTiming]]:
        """Run a graph as ``dispatch`` does, with the same results, and return the timings of its kernels in order."""


def begin_compile(
    backend: Backend, graph: Graph, progress: OnProgress | None
) -> CompiledGraph | Awaitable[CompiledGraph]:
    """Compile a graph, reporting progress where the backend can."""
    if progress is not None and isinstance(backend, TellsProgress):
        return backend.compile_telling(graph, progress)
    return backend.compile(graph)


def constant_buffers(graph: Graph) -> list[Storage]:
    """Return the constant buffers that a graph reads, each once."""
    return list(dict.fromkeys([value.data for value in graph.constants if isinstance(value.data, Storage)]))
