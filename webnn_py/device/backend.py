"""The ``Backend`` protocol, which a device implements, and the records that cross it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, Protocol, runtime_checkable

import attrs
import numpy.typing as npt
import trio

from webnn_py.descriptors import DATA_TYPES, MAX_DIMENSION, MLOperandDataType, MLOperandDescriptor, stored
from webnn_py.device.failure import Failure
from webnn_py.device.kernel_nodes import KernelNode
from webnn_py.graph import Graph
from webnn_py.operators.declaration import Operator
from webnn_py.operators.limits import MAX_RANK
from webnn_py.saved_graphs.record import SavedCode

HostArray = npt.NDArray[Any]
"""Bytes on the host's side, C-contiguous, of a descriptor's data type and shape."""


MLDeviceType = Literal["cpu", "gpu", "npu"]
"""A kind of processor (webnn issue 836)."""


@attrs.frozen
class BackendInfo:
    """The device, adapter and driver that a context runs on.

    Attributes:
        name: the device's, as ``create_context(backend=…)`` takes it.
        adapter: the processor, as its driver or the system calls it.
        driver: the library or driver that runs it, with its version.
        features: optional abilities of the adapter.
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


@attrs.frozen
class CacheStatistics:
    """Counts of the compiled code that a device keeps for further graphs.

    Attributes:
        kept: pieces of it.
        kept_bytes: about the bytes that they take.
        made: pieces compiled so far.
        dropped: pieces that had to go, for want of room.
    """

    kept: int
    kept_bytes: int
    made: int
    dropped: int


Claim = tuple[MLOperandDataType, ...] | Mapping[str, tuple[MLOperandDataType, ...]]
"""Data types of all operands and outputs of an operator, or of those of each row of its limits."""


@attrs.frozen(eq=False)
class Capabilities:
    """The abilities of a backend, for ``op_support_limits()`` and for validation, which are the same.

    Attributes:
        supports: the data types in which the device runs an operator itself, of all its operands and outputs alike,
            or for each row of the operator's limits; none when it does not. The operator is then expanded into others,
            if those are supported.
        data_types: the data types of inputs, constants and outputs.
        max_rank: the highest rank.
        max_byte_length: the most bytes that one operand or buffer may take.
        preferred_input_layout: the layout of images that runs fastest.
        reads_packed: whether ``dequantizeLinear`` reads constants of four bits as they lie, two in a byte.
        packed: the data types of four bits that scripts may use in this context; none unless they were asked for.
        composites: which of ``operators.composites`` the device takes whole.
    """

    supports: Callable[[Operator[..., Any]], Claim]
    data_types: tuple[MLOperandDataType, ...] = DATA_TYPES
    max_rank: int = MAX_RANK
    max_byte_length: int = MAX_DIMENSION
    preferred_input_layout: Literal["nchw", "nhwc"] = "nchw"
    reads_packed: bool = False
    packed: tuple[MLOperandDataType, ...] = ()
    composites: tuple[Operator[..., Any], ...] = ()


class Memory:
    """A piece of a device's memory and how many hold it; it is freed when the last lets go, unless it is borrowed.

    Its bytes are counted under ``label``, which stays the same while anybody holds it.
    """

    __slots__ = ("__weakref__", "borrowed", "byte_length", "data", "holders", "label")

    def __init__(self, data: Any, byte_length: int, *, borrowed: bool = False, label: str = "") -> None:
        self.data = data
        self.byte_length = byte_length
        self.holders = 0
        self.borrowed = borrowed
        self.label = label


class Storage:
    """The memory of an ``MLBuffer`` on the device.

    Attributes:
        descriptor: data type and shape; of elements of four bits, those of the bytes that they lie in.
        memory: the memory, once allocated and until released.
        failure: why the last step that should have written it did not; None when its data are good.
        lent: while the memory is lent to somebody else, the event that is set when it comes back.
        number: what those who trace call it; 0 while nobody has.
        label: the buffer's; "" for none.
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
        """Whether the memory is a user's, who may destroy it at any time."""
        return self.memory is not None and self.memory.borrowed

    @property
    def data(self) -> Any:
        """The backend's own handle of the memory.

        Raises:
            MemoryError: nothing is allocated.
        """
        if self.memory is None:
            raise MemoryError("the buffer has no memory on the device")
        return self.memory.data


class CompiledGraph(Protocol):
    """A graph made ready for a device; ``byte_length`` is the memory that is its own."""

    @property
    def byte_length(self) -> int:
        """Bytes of constants and intermediates that live as long as the graph."""


HELD_IN_COMMON: Final = "shared"
"""The attribute of a compiled graph, if it has one, that is the memory that it uses in common with others, each piece
once: it is counted once and freed after the last one."""


class Backend(Protocol):
    """A device, seen from the device timeline.

    Every method is called by the device timeline only, one at a time, and either returns its result or an awaitable
    of it. Whatever it raises is told to the promise, or marks the buffers that it should have written.
    """

    info: BackendInfo
    capabilities: Capabilities
    overlapping: bool
    """Whether any of the methods returns ``InFlight``: the device keeps the order of what was begun itself."""
    lost: Callable[[str], None]
    """Set by the owner; the backend calls it, in the trio thread, when it notices that the device is gone."""

    def allocate(self, descriptor: MLOperandDescriptor) -> Any | Awaitable[Any]:
        """Allocate memory with all bytes zero and return the handle."""

    def write(self, storage: Storage, data: HostArray) -> Awaitable[None] | None:
        """Make ``data``, which is the device's to keep, the contents of ``storage``."""

    def read(self, storage: Storage) -> HostArray | Awaitable[HostArray]:
        """Copy the contents to a fresh array."""

    def free(self, data: Any) -> Awaitable[None] | None:
        """Give the memory of a handle back, once everything that was begun before has finished."""

    def compile(self, graph: Graph) -> CompiledGraph | Awaitable[CompiledGraph]:
        """Make a graph of supported operators ready; constants that are ``Storage`` may be released afterwards."""

    def dispatch(
        self, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> Awaitable[None] | None:
        """Run a graph: read ``inputs``, write all of ``outputs``."""

    def release_graph(self, compiled: Any) -> Awaitable[None] | None:
        """Give the memory of a graph back, once everything that was begun before has finished."""

    def finish(self) -> Awaitable[None] | None:
        """Wait until everything that was begun has finished."""

    def flush(self) -> None:
        """Nothing more is begun for now, or something long is: begin what was only collected."""

    def stop(self) -> None:
        """The context is lost: a dispatch that is running may end before its next kernel."""

    def close(self) -> None:
        """The last release has run."""


@attrs.frozen
class CopyRegion:
    """Which elements of a buffer are copied to where in another; all of it in row-major order.

    Attributes:
        source_offset: the first element that is read.
        destination_offset: the first element that is written.
        count: how many there are.
    """

    source_offset: int
    destination_offset: int
    count: int

    @property
    def of_source(self) -> slice:
        """The elements that are read."""
        return slice(self.source_offset, self.source_offset + self.count)

    @property
    def of_destination(self) -> slice:
        """The elements that are written."""
        return slice(self.destination_offset, self.destination_offset + self.count)


@runtime_checkable
class Copies(Protocol):
    """A backend that copies between buffers and clears them on the device; with others bytes go through the host."""

    def copy(self, source: Storage, destination: Storage, region: CopyRegion) -> Awaitable[None] | None:
        """Copy elements between two storages of one data type, or within one, where the ranges do not overlap."""

    def clear(self, storage: Storage) -> Awaitable[None] | None:
        """Set all bytes to zero."""


OnProgress = Callable[[int, int], object]
"""(kernels that are compiled, all) → nothing."""


@runtime_checkable
class TellsProgress(Protocol):
    """A backend that can tell how far a build is."""

    def compile_telling(self, graph: Graph, progress: OnProgress) -> Awaitable[CompiledGraph]:
        """Make a graph ready as ``compile`` does; ``progress`` is called in the event loop's thread, now and then."""


@runtime_checkable
class KeepsCode(Protocol):
    """A backend that keeps compiled code when the graph that it was compiled for is gone."""

    def cache_statistics(self) -> CacheStatistics:
        """Return the counts of what it keeps."""


@runtime_checkable
class SavesCode(Protocol):
    """A backend that can write down what it has compiled; with others, nodes are written down and compiled again."""

    code_identity: str
    """The adapter, driver, versions and options that code depends on; code of another identity is not loaded."""

    def save_code(self, compiled: Any) -> SavedCode | Awaitable[SavedCode]:
        """Serialize a compiled graph, without the contents of its intermediates."""

    def load_code(self, code: SavedCode) -> CompiledGraph | Awaitable[CompiledGraph]:
        """The compiled graph again; ``UnusableFileError`` where that is none of this backend's."""


@runtime_checkable
class Lends(Protocol):
    """A backend whose memory can be shared with a user's own GPU work."""

    def check_foreign(self, value: object, descriptor: MLOperandDescriptor) -> Any:
        """A user's buffer as memory for ``descriptor``; ``TypeError`` when it cannot be."""

    def lend(self, storage: Storage, come_back: Callable[[], None], is_out: Callable[[], bool]) -> Any:
        """The memory of ``storage`` for a user, who gives it back by ``come_back`` while it ``is_out``."""


@attrs.frozen
class KernelTiming:
    """The time of one kernel of a dispatch.

    Attributes:
        name: the kernel's, for eyes.
        operators: the operators that it computes, by their names in the specification; none for a mere copy.
        start_ns: when it began: on the clock of ``time.perf_counter_ns()`` for "host", after the first kernel of the
            dispatch began for "gpu".
        duration_ns: how long it took.
        bytes_moved: the bytes of all that it reads and writes, each operand and result counted once and whole.
        clock: whose clock it is.
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
    """A backend that keeps the copy that a write makes of its data where it can be written from at once."""

    def stage(self, array: HostArray) -> Any:
        """A copy of a contiguous array, for :meth:`Backend.write`; it has ``nbytes``."""


@runtime_checkable
class TimesKernels(Protocol):
    """A backend that can tell how long each kernel of a dispatch takes."""

    def dispatch_timed(
        self, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> list[KernelTiming] | Awaitable[list[KernelTiming]]:
        """Run a graph as ``dispatch`` does, with the same results, and tell of its kernels in their order."""


def begin_compile(
    backend: Backend, graph: Graph, progress: OnProgress | None
) -> CompiledGraph | Awaitable[CompiledGraph]:
    """Compile a graph, and tell how far it is where the backend can."""
    if progress is not None and isinstance(backend, TellsProgress):
        return backend.compile_telling(graph, progress)
    return backend.compile(graph)


def constant_buffers(graph: Graph) -> list[Storage]:
    """Return the constant buffers that a graph reads, each once."""
    return list(dict.fromkeys([value.data for value in graph.constants if isinstance(value.data, Storage)]))
