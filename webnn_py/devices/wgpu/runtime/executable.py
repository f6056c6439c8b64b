"""A graph compiled for a GPU: a flat list of pipelines, bind groups and workgroup counts.

Bind groups of buffers that belong to the graph are made at build; those that name a dispatch's inputs and outputs are
made when these buffers come for the first time, and kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, Self

import attrs
import numpy as np
import wgpu

from webnn_py.core.device.backend import Memory, Storage
from webnn_py.core.graph import Graph, Node, Output, Value
from webnn_py.devices.arena import split_constant
from webnn_py.devices.compiled_plan import CompiledPlan
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import PassReport
from webnn_py.devices.saved_code import Bytes, SavedCode
from webnn_py.devices.shared_constants import Identities, Identity, SharedConstants, digest_of_contents
from webnn_py.devices.wgpu.engines.engine import Launch
from webnn_py.devices.wgpu.lowering import LoweringContext, lowered
from webnn_py.devices.wgpu.passes.arena import BufferRange, DeviceMemory, place_blocks
from webnn_py.devices.wgpu.passes.kernel_groups import KernelGroups
from webnn_py.devices.wgpu.passes.pipeline import PASSES
from webnn_py.devices.wgpu.records.buffer import Buffer, padded
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.runtime.commands_ahead import CommandsAhead
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue
from webnn_py.devices.wgpu.runtime.memory import STORAGE
from webnn_py.devices.wgpu.runtime.pipelines import EndedError, Pipelines
from webnn_py.devices.wgpu.runtime.saved_kernels import SavedKernels, SavedMemory, to_saved
from webnn_py.devices.wgpu.runtime.timestamps import TimedLaunches
from webnn_py.devices.wgpu.runtime.uploads import ConstantUploads

MOST_GROUPS: Final = 64
"""The most bind groups that are kept for one kernel's inputs and outputs."""


@attrs.frozen(eq=False)
class GraphResources:
    """The resources that the graphs of a context share.

    Attributes:
        device: the device.
        queue: its queue.
        pipelines: its pipelines.
        features: the features that kernels may use.
        constants: the constants that graphs have in common.
        uploads: copies constants to the device.
    """

    device: wgpu.GPUDevice
    queue: ContextQueue
    pipelines: Pipelines
    features: Features
    constants: SharedConstants
    uploads: ConstantUploads


class WgpuGraph:
    """A compiled graph.

    Args:
        graph: what to compile.
        resources: what the graphs of a context share.
        fold: whether to fold constants, and to keep those that may be shared for other graphs; False for a graph that
            only computes such constants.
        on_progress: called with the number of kernels that are compiled, and of all, each time there is one more.

    Attributes:
        passes: the changes that each pass made to the graph; none for a graph that was compiled before.
    """

    passes: tuple[PassReport, ...] = ()

    def __init__(
        self,
        graph: Graph,
        resources: GraphResources,
        *,
        fold: bool = True,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._on_progress = on_progress
        self._begin(resources, keeps=fold)
        graph, self.passes = PASSES.run(graph, PassContext())
        folded, live = split_constant(graph) if fold else ([], list(graph.nodes))
        identities = Identities(graph, folded, resources.constants)
        known, missing = self._fold(folded, live, graph, identities)
        alive = Graph(graph.inputs, graph.outputs, tuple(live))
        context = LoweringContext(known=known, identity_of=identities.of, begin=self._take_written)
        lowering, reports = lowered(KernelGroups.from_graph(alive, resources.features), context)
        self.passes += reports
        kernels = lowering.nodes
        self._compute(missing)  # while the drivers compile
        self._memory |= place_blocks(kernels, resources.device.limits["max-buffer-size"], self.allocate)
        intermediates = {item.buffer for buffer, item in self._memory.items() if buffer.kind == "block"}
        prologue = self._missing_forms(lowering.prologue, kernels)
        compiled = self._compiled([*prologue, *kernels])
        self._prepare(prologue, compiled, kernels)
        self._steps = [
            KernelLaunch(self, kernel, pipeline)
            for kernel, pipeline in zip(kernels, compiled[len(prologue) :], strict=True)
        ]
        between = sum(buffer.size for buffer in intermediates)
        constant = self.byte_length - between + sum(memory.byte_length for memory in self._shared.values())
        drawn = [(kernel.label, kernel.drawn) for kernel in kernels]
        self.plan = CompiledPlan.from_kernels(drawn, folded, live, (between, constant))
        if fold:
            resources.constants.enter(self._shared)

    def _take_written(self, kernel: Kernel) -> None:
        """Begin to compile a kernel as soon as it is written."""
        if self._queue.ending.done():
            raise EndedError
        self._begin_compiling([kernel])

    def _begin_compiling(self, kernels: Sequence[Kernel]) -> None:
        for kernel, compiling in zip(kernels, self._pipelines.begin(kernels), strict=True):
            self._begun[kernel.source] = compiling

    def _compiled(self, kernels: Sequence[Kernel]) -> list[wgpu.GPUComputePipeline]:
        """Return the pipelines of all kernels; those that were begun are taken from there, since none may be kept."""
        self._begin_compiling([kernel for kernel in kernels if kernel.source not in self._begun])
        compiling = [self._begun[kernel.source] for kernel in kernels]
        self._begun.clear()
        pipelines = []
        for pipeline in self._pipelines.finished(kernels, compiling, self._queue.ending):
            pipelines.append(pipeline)
            if self._on_progress is not None:
                self._on_progress(len(pipelines), len(kernels))
        return pipelines

    def _begin(self, resources: GraphResources, *, keeps: bool) -> None:
        self._resources = resources
        self._device = resources.device
        self._queue = resources.queue
        self._pipelines = resources.pipelines
        self._keeps = keeps
        self._owned: list[wgpu.GPUBuffer] = []
        self._shared: dict[Identity, Memory] = {}
        self._memory: dict[Buffer, BufferRange] = {}
        self._own_groups: dict[object, wgpu.GPUBindGroup] = {}
        self._begun: dict[str, Future[wgpu.GPUComputePipeline]] = {}
        self._bound: tuple[object, ...] = ()  # names and memory of inputs and outputs that the launches are for
        self._launches: list[Launch] = []
        self.ahead = CommandsAhead(resources.queue)
        self.seconds: float | None = None  # what a run is known to take, for waiting

    @classmethod
    def of_saved(cls, saved: SavedKernels, resources: GraphResources) -> Self:
        """Return a graph that was compiled before: pipelines are compiled while constants are uploaded and bound."""
        self = cls.__new__(cls)
        self._begin(resources, keeps=True)
        pipelines, queue = resources.pipelines, resources.queue
        compiling = pipelines.begin(saved.kernels)
        memory = [self._memory_of(plan) for plan in saved.memory]
        self._memory = {
            buffer: BufferRange(memory[index], offset, length)
            for buffer, (index, offset, length) in saved.places.items()
        }
        self._steps = [
            KernelLaunch(self, kernel, pipeline)
            for kernel, pipeline in zip(
                saved.kernels, pipelines.finished(saved.kernels, compiling, queue.ending), strict=True
            )
        ]
        resources.constants.enter(self._shared)
        return self

    def _memory_of(self, plan: SavedMemory) -> wgpu.GPUBuffer:
        if plan.contents is None:
            return self.allocate(plan.byte_length, "intermediates")
        saved, constants = plan.digest, self._resources.constants
        identity = None if saved is None else constants.saved_identity(saved, plan.byte_length)
        memory, is_new = self._constant_memory(identity, plan.byte_length, "constant")
        if is_new:
            self._resources.uploads.fill(memory, np.frombuffer(plan.contents, np.uint8))
        return memory

    def constant_memory(self) -> list[DeviceMemory]:
        """Return the GPU buffers that hold constants, each once, in the order in which they are read."""
        buffers = (buffer for step in self._steps for buffer in (*step.kernel.reads, *step.kernel.writes))
        return list(dict.fromkeys(self._memory[buffer].buffer for buffer in buffers if buffer.kind == "constant"))

    def saved(self, contents: Mapping[DeviceMemory, Bytes]) -> SavedCode:
        """Return the kernels, written down with the contents of :meth:`constant_memory`."""
        digests = {memory.data: identity.digest for identity, memory in self._shared.items()}
        return to_saved([step.kernel for step in self._steps], self._memory, contents, digests)

    @property
    def byte_length(self) -> int:
        """Bytes of constants and intermediates that are the graph's alone."""
        return sum(buffer.size for buffer in self._owned)

    @property
    def shared(self) -> tuple[Memory, ...]:
        """The memory of constants that other graphs may use as well."""
        return tuple(self._shared.values())

    def run(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Launch all kernels."""
        storages = (*inputs.values(), *outputs.values())
        bound = (*inputs, *outputs, *[storage.data for storage in storages])
        if bound != self._bound:
            steps = self._needed(inputs, outputs)
            self._bound, self._launches = bound, [step.launch(inputs, outputs) for step in steps]
            # What is a user's may be destroyed at any time, and has to be looked at when it is encoded.
            self.ahead.forget(None if any(storage.is_borrowed for storage in storages) else self._launches)
        self._queue.launch(self._launches, self.ahead)

    def timed(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> TimedLaunches:
        """Submit all kernels by themselves and now, each with a look at the GPU's clock before and after it."""
        steps = self._needed(inputs, outputs)
        launches = [step.launch(inputs, outputs) for step in steps]
        return TimedLaunches(self._device, self._queue, [step.kernel for step in steps], launches)

    @property
    def in_place(self) -> dict[str, str]:
        """The outputs that may be in the buffer of an input, by name: that input, which one kernel alone reads."""
        read = Counter(buffer for step in self._steps for buffer in {*step.kernel.reads})
        pairs = [(step.kernel.reads[0], step.kernel.writes[0]) for step in self._steps if step.kernel.copies]
        return {output.name: past.name for past, output in pairs if read[past] == 1}

    def _needed(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> list[KernelLaunch]:
        """Return the launches without the copies of inputs that are in the buffer of their output."""
        return [step for step in self._steps if not (step.kernel.copies and step.is_in_place(inputs, outputs))]

    def run_now(self, outputs: Mapping[str, Storage]) -> None:
        """Run a graph without inputs now, by itself, from any thread."""
        self._run_now([step.launch({}, outputs) for step in self._steps])

    def _run_now(self, launches: Sequence[Launch]) -> None:
        self._resources.uploads.submit()
        self._queue.run(launches)

    def release(self) -> None:
        """Give the memory back; the GPU keeps it until it has finished with it."""
        for buffer in self._owned:
            buffer.destroy()
        self._owned = []
        self._shared = {}
        self._steps = []
        self._bound, self._launches = (), []
        self.ahead.forget(None)
        self._memory = {}
        self._own_groups = {}

    # --- building --------------------------------------------------------------------------------------------

    def _fold(
        self, folded: Sequence[Node], live: Sequence[Node], graph: Graph, identities: Identities
    ) -> tuple[dict[Value, Buffer], dict[Value, wgpu.GPUBuffer]]:
        """Return the buffers of values that depend on no input, and the memory of those that are not computed yet."""
        constant = set(folded)
        needed = {value: None for node in live for value in node.inputs} | dict.fromkeys(graph.outputs.values())
        known: dict[Value, Buffer] = {}
        missing: dict[Value, wgpu.GPUBuffer] = {}
        for value in needed:
            if not (isinstance(value, Output) and value.node in constant):
                continue
            identity, byte_length = identities.of(value), value.descriptor.byte_length
            memory, is_new = self._constant_memory(identity, byte_length, "folded constant")
            known[value] = Buffer("constant", byte_length, data=memory, identity=identity)
            if is_new:
                missing[value] = memory
        return known, missing

    def _compute(self, missing: Mapping[Value, wgpu.GPUBuffer]) -> None:
        """Compute values that depend on no input on the GPU, now."""
        if not missing:
            return
        names = {str(index): value for index, value in enumerate(missing)}
        outputs = {name: Storage(value.descriptor) for name, value in names.items()}
        for name, value in names.items():
            outputs[name].memory = Memory(missing[value], missing[value].size)
        computing = WgpuGraph(Graph.reaching(names), self._resources, fold=False)
        computing.run_now(outputs)
        computing.release()

    def _missing_forms(self, prologue: Sequence[Kernel], kernels: Sequence[Kernel]) -> list[Kernel]:
        """Give other forms of constants their memory; return the kernels that make those that no graph has yet."""
        identities = identities_of_forms(prologue, self._resources.constants)
        needed = {buffer for kernel in kernels for buffer in kernel.reads}
        missing: list[Kernel] = []
        for kernel in reversed(prologue):
            if needed.isdisjoint(kernel.writes):
                continue  # only for a form that is there
            is_missing = False
            for buffer in kernel.writes:
                memory, is_new = self._constant_memory(identities[buffer], buffer.byte_length, "repacked constant")
                self._memory[buffer] = BufferRange.whole(memory)
                is_missing = is_missing or is_new
            if is_missing:
                missing.append(kernel)
                needed.update(kernel.reads)
        return missing[::-1]

    def _prepare(
        self, prologue: Sequence[Kernel], pipelines: Sequence[wgpu.GPUComputePipeline], kernels: Sequence[Kernel]
    ) -> None:
        """Run the kernels that make other forms of constants, and drop what only they needed."""
        if not prologue:
            return
        steps = [KernelLaunch(self, kernel, pipeline) for kernel, pipeline in zip(prologue, pipelines, strict=False)]
        self._run_now([step.launch({}, {}) for step in steps])
        needed = {buffer for kernel in kernels for buffer in kernel.reads}
        kept = {buffer.identity for buffer in needed}
        for buffer in {buffer for kernel in prologue for buffer in kernel.reads} - needed:
            if isinstance(buffer.data, np.ndarray) and (buffer.identity is None or buffer.identity not in kept):
                self._drop(buffer)

    def _drop(self, buffer: Buffer) -> None:
        """Let go of a constant's memory; another graph may hold it."""
        memory = self._memory.pop(buffer).buffer
        if memory in self._owned:
            self._owned.remove(memory)
            memory.destroy()
        elif buffer.identity is not None:
            self._shared.pop(buffer.identity, None)

    def _constant_memory(self, identity: Identity | None, byte_length: int, label: str) -> tuple[wgpu.GPUBuffer, bool]:
        """Return the memory of a constant, and whether it is fresh, so that its contents have to be written."""
        if identity is None:
            return self.allocate(byte_length, label), True
        found = self._shared.get(identity)
        found = self._resources.constants.find(identity) if found is None else found
        if found is not None:
            self._shared[identity] = found
            return found.data, False
        if not self._keeps:
            return self.allocate(byte_length, label), True
        memory = self._create_buffer(byte_length, label)
        self._shared[identity] = Memory(memory, memory.size)
        return memory, True

    def allocate(self, byte_length: int, label: str) -> wgpu.GPUBuffer:
        """Memory that lives as long as the graph."""
        buffer = self._create_buffer(byte_length, label)
        self._owned.append(buffer)
        return buffer

    def _create_buffer(self, byte_length: int, label: str) -> wgpu.GPUBuffer:
        return self._device.create_buffer(label=label, size=padded(byte_length), usage=STORAGE)

    def memory(self, buffer: Buffer) -> BufferRange:
        """Return the memory of a block or constant; constants are uploaded when the first step asks for them."""
        if buffer not in self._memory:
            self._memory[buffer] = BufferRange.whole(self._constant(buffer))
        return self._memory[buffer]

    def _constant(self, buffer: Buffer) -> wgpu.GPUBuffer:
        if isinstance(buffer.data, Storage):
            held: wgpu.GPUBuffer = buffer.data.data
            return held
        if isinstance(buffer.data, np.ndarray):
            memory, is_new = self._constant_memory(buffer.identity, buffer.byte_length, "constant")
            if is_new:
                self._resources.uploads.fill(memory, buffer.data)
            return memory
        if not isinstance(buffer.data, self._queue.engine.api.GPUBuffer):
            raise TypeError(f"a constant of {type(buffer.data).__name__}")
        return buffer.data

    def bind_own(self, kernel: Kernel, ranges: Sequence[BufferRange]) -> wgpu.GPUBindGroup:
        """Return a bind group of the graph's own memory; kernels with the same ranges share one."""
        key = (kernel.writable, *ranges)
        if key not in self._own_groups:
            self._own_groups[key] = self.bind(kernel, ranges)
        return self._own_groups[key]

    def bind(self, kernel: Kernel, ranges: Sequence[BufferRange]) -> wgpu.GPUBindGroup:
        """Return a bind group of ``ranges``, in the order of the kernel's bindings."""
        return self._device.create_bind_group(
            label=kernel.label,
            layout=self._pipelines.layout(kernel.writable)[0],
            entries=[
                {"binding": index, "resource": {"buffer": item.buffer, "offset": item.offset, "size": item.byte_length}}
                for index, item in enumerate(ranges)
            ],
        )


class KernelLaunch:
    """One kernel of a graph, ready to be launched."""

    def __init__(self, graph: WgpuGraph, kernel: Kernel, pipeline: wgpu.GPUComputePipeline) -> None:
        self._graph = graph
        self.kernel = kernel
        self._pipeline = pipeline
        self._buffers = (*kernel.reads, *kernel.writes)
        self._external = [buffer for buffer in self._buffers if buffer.kind in ("input", "output")]
        self._groups: dict[tuple[wgpu.GPUBuffer, ...], wgpu.GPUBindGroup] = {}
        self._fixed: Launch | None = None
        # Now, since constant buffers may be destroyed after the build.
        own = [graph.memory(buffer) for buffer in self._buffers if buffer not in self._external]
        if not self._external:
            group = graph.bind_own(kernel, own)
            self._groups[()] = group
            self._fixed = (pipeline, group, *kernel.workgroups)

    def is_in_place(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> bool:
        """Return whether the input that a copy reads is in the buffer of the output that it writes."""
        return inputs[self.kernel.reads[0].name] is outputs[self.kernel.writes[0].name]

    def launch(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> Launch:
        """Return the launch for some inputs and outputs."""
        if self._fixed is not None:
            return self._fixed
        given = {buffer: (inputs if buffer.kind == "input" else outputs)[buffer.name].data for buffer in self._external}
        key = tuple(given.values())
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= MOST_GROUPS:
                self._groups.clear()
            ranges = [
                BufferRange.whole(given[buffer]) if buffer in given else self._graph.memory(buffer)
                for buffer in self._buffers
            ]
            group = self._groups[key] = self._graph.bind(self.kernel, ranges)
        return (self._pipeline, group, *self.kernel.workgroups)


def identities_of_forms(kernels: Sequence[Kernel], constants: SharedConstants) -> dict[Buffer, Identity | None]:
    """Return the identities of what kernels write that read constants alone, in the order in which they run."""
    identities: dict[Buffer, Identity | None] = {}
    for kernel in kernels:
        keyed = [identities.get(buffer, buffer.identity) for buffer in kernel.reads]
        whole = [
            identity or digest_of_contents(buffer.data) for buffer, identity in zip(kernel.reads, keyed, strict=True)
        ]
        is_known = any(keyed) and all(whole)
        for index, buffer in enumerate(kernel.writes):
            is_whole = is_known and buffer not in identities  # written by several, it is nobody's alone
            text = repr(("form", kernel.source, kernel.workgroups, index))
            identities[buffer] = constants.identity(text, *whole) if is_whole else None
    return identities
