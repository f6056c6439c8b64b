"""A graph compiled for a GPU: a flat list of pipelines, bind groups and workgroup counts.

Bind groups of buffers that belong to the graph are made at build; those that name a dispatch's inputs and outputs are
made when these buffers come for the first time, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import wgpu

from webnn_py.device.backend import Memory, Storage
from webnn_py.device.on_wgpu.lowering import GraphLowering
from webnn_py.device.on_wgpu.passes.arena import BufferRange, place_blocks
from webnn_py.device.on_wgpu.passes.composite_expansion import expand_composites
from webnn_py.device.on_wgpu.passes.horizontal_fusion import fuse_horizontally
from webnn_py.device.on_wgpu.records.buffer import Buffer, padded
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.runtime.memory import STORAGE
from webnn_py.device.on_wgpu.runtime.native import Launch, NativeQueue
from webnn_py.device.on_wgpu.runtime.pipelines import Pipelines
from webnn_py.device.plan import split_constant
from webnn_py.graph import Graph, Node, Output, Value

MOST_GROUPS: Final = 64
"""So many bind groups are kept for one kernel's inputs and outputs."""


class WgpuGraph:
    """A compiled graph."""

    def __init__(
        self,
        graph: Graph,
        device: wgpu.GPUDevice,
        queue: NativeQueue,
        pipelines: Pipelines,
        features: Features,
        *,
        fold: bool = True,
    ) -> None:
        self._device = device
        self._queue = queue
        self._pipelines = pipelines
        self._features = features
        self._owned: list[wgpu.GPUBuffer] = []
        self._memory: dict[Buffer, BufferRange] = {}
        graph = fuse_horizontally(expand_composites(graph))
        folded, live = split_constant(graph) if fold else ([], list(graph.nodes))
        known = self._fold(graph, folded, live)
        lowering = GraphLowering(Graph(graph.inputs, graph.outputs, tuple(live)), features, known)
        lowering.run()
        self._memory |= place_blocks(lowering.kernels, device.limits["max-buffer-size"], self.allocate)
        compiled = pipelines.compile([*lowering.prologue, *lowering.kernels])
        self._prepare(lowering, compiled)
        compiled = compiled[len(lowering.prologue) :]
        self._steps = [
            KernelLaunch(self, kernel, pipeline) for kernel, pipeline in zip(lowering.kernels, compiled, strict=True)
        ]

    @property
    def byte_length(self) -> int:
        """Bytes of constants and intermediates."""
        return sum(buffer.size for buffer in self._owned)

    def run(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Launch all kernels."""
        self._queue.launch([step.launch(inputs, outputs) for step in self._steps])

    def run_now(self, outputs: Mapping[str, Storage]) -> None:
        """Likewise of a graph without inputs, by itself, from any thread."""
        self._queue.run([step.launch({}, outputs) for step in self._steps])

    def release(self) -> None:
        """Give the memory back; the GPU keeps it until it has finished with it."""
        for buffer in self._owned:
            buffer.destroy()
        self._owned = []
        self._steps = []
        self._memory = {}

    # --- building --------------------------------------------------------------------------------------------

    def _fold(self, graph: Graph, folded: Sequence[Node], live: Sequence[Node]) -> dict[Value, Buffer]:
        """Compute on the GPU, now, what depends on no input; returns where it lies."""
        constant = set(folded)
        needed = {value: None for node in live for value in node.inputs} | dict.fromkeys(graph.outputs.values())
        wanted = {
            str(index): value
            for index, value in enumerate(needed)
            if isinstance(value, Output) and value.node in constant
        }
        if not wanted:
            return {}
        outputs = {name: Storage(value.descriptor) for name, value in wanted.items()}
        known: dict[Value, Buffer] = {}
        for name, value in wanted.items():
            memory = self.allocate(value.descriptor.byte_length, "folded constant")
            outputs[name].memory = Memory(memory, memory.size)
            known[value] = Buffer("constant", value.descriptor.byte_length, data=memory)
        constants = Graph.reaching(wanted)
        prologue = WgpuGraph(constants, self._device, self._queue, self._pipelines, self._features, fold=False)
        prologue.run_now(outputs)
        prologue.release()
        return known

    def _prepare(self, lowering: GraphLowering, pipelines: Sequence[wgpu.GPUComputePipeline]) -> None:
        """Run the kernels that make other copies of constants, and drop what only they needed."""
        if not lowering.prologue:
            return
        for kernel in lowering.prologue:
            for buffer in kernel.writes:
                self._memory[buffer] = BufferRange.whole(self.allocate(buffer.byte_length, "repacked constant"))
        steps = [
            KernelLaunch(self, kernel, pipeline) for kernel, pipeline in zip(lowering.prologue, pipelines, strict=False)
        ]
        self._queue.run([step.launch({}, {}) for step in steps])
        needed = {buffer for kernel in lowering.kernels for buffer in kernel.reads}
        for buffer in {buffer for kernel in lowering.prologue for buffer in kernel.reads} - needed:
            if isinstance(buffer.data, np.ndarray):
                memory = self._memory.pop(buffer).buffer
                self._owned.remove(memory)
                memory.destroy()

    def allocate(self, byte_length: int, label: str) -> wgpu.GPUBuffer:
        """Memory that lives as long as the graph."""
        buffer = self._device.create_buffer(label=label, size=padded(byte_length), usage=STORAGE)
        self._owned.append(buffer)
        return buffer

    def memory(self, buffer: Buffer) -> BufferRange:
        """The memory of a block or constant; constants are uploaded when the first step asks for them."""
        if buffer not in self._memory:
            self._memory[buffer] = BufferRange.whole(self._constant(buffer))
        return self._memory[buffer]

    def _constant(self, buffer: Buffer) -> wgpu.GPUBuffer:
        if isinstance(buffer.data, Storage):
            held: wgpu.GPUBuffer = buffer.data.data
            return held
        if isinstance(buffer.data, np.ndarray):
            memory = self.allocate(buffer.byte_length, "constant")
            upload(self._queue.fill, memory, buffer.data)
            return memory
        if not isinstance(buffer.data, wgpu.GPUBuffer):
            raise TypeError(f"a constant of {type(buffer.data).__name__}")
        return buffer.data

    def bind(self, kernel: Kernel, ranges: Sequence[BufferRange]) -> wgpu.GPUBindGroup:
        """A bind group of ``ranges``, in the order of the kernel's bindings."""
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
        self._kernel = kernel
        self._pipeline = pipeline
        self._buffers = (*kernel.reads, *kernel.writes)
        self._external = [buffer for buffer in self._buffers if buffer.kind in ("input", "output")]
        self._groups: dict[tuple[wgpu.GPUBuffer, ...], wgpu.GPUBindGroup] = {}
        self._fixed: Launch | None = None
        # Now, since constant buffers may be destroyed after the build.
        own = [graph.memory(buffer) for buffer in self._buffers if buffer not in self._external]
        if not self._external:
            group = graph.bind(kernel, own)
            self._groups[()] = group
            self._fixed = (pipeline._internal, group._internal, *kernel.workgroups, group)

    def launch(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> Launch:
        """Raw handles for :meth:`.NativeQueue.launch`."""
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
            group = self._groups[key] = self._graph.bind(self._kernel, ranges)
        return (self._pipeline._internal, group._internal, *self._kernel.workgroups, group)


def upload(
    write: Callable[[wgpu.GPUBuffer, Any, int], None], buffer: wgpu.GPUBuffer, data: np.ndarray[Any, Any]
) -> None:
    """Copy host bytes into a buffer; the queue wants a multiple of four bytes, and the buffer has room for it.

    Args:
        write: copies, in a way of the queue's.
        buffer: copy into this.
        data: the bytes.
    """
    if data.nbytes % 4:
        whole = np.zeros(-(-data.nbytes // 4) * 4, np.uint8)
        whole[: data.nbytes] = data.reshape(-1).view(np.uint8)
        data = whole
    write(buffer, np.ascontiguousarray(data), data.nbytes)
