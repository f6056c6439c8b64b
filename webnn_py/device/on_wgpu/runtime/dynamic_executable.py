"""A graph with named dimensions on a GPU: kernels whose sizes come from a uniform buffer, compiled once.

While kernels are written, sizes are expressions, and what the writing asks of them (does 4 divide it, is it less than
256) is answered for the sizes at hand. So a set of kernels, a *variant*, is right for all sizes with the same answers.
Sizes with other answers get another variant, of which there are few, since few questions are asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np
import wgpu

from webnn_py.device.backend import Memory, Storage
from webnn_py.device.on_wgpu.codegen.size_uniforms import SizeMarks, UnwritableSizeError
from webnn_py.device.on_wgpu.lowering import KernelSequence
from webnn_py.device.on_wgpu.passes.arena import ALIGNMENT, BufferRange
from webnn_py.device.on_wgpu.records.buffer import padded
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.runtime.executable import GraphResources, WgpuGraph
from webnn_py.device.on_wgpu.runtime.memory import STORAGE
from webnn_py.device.on_wgpu.runtime.native import BufferCopy
from webnn_py.device.on_wgpu.runtime.pipelines import CompilationError
from webnn_py.device.on_wgpu.runtime.timestamps import TimedLaunches
from webnn_py.graph import Constant, Graph
from webnn_py.named_sizes.decisions import Sizes, Tracing, UnknownSizeError
from webnn_py.named_sizes.expressions import SymbolicSize
from webnn_py.named_sizes.values import coverage, has_size, values_function
from webnn_py.sized_graphs import DynamicGraph, with_constants

MOST_VARIANTS: Final = 64
"""The most variants that are kept, those used last."""

AHEAD: Final = 32
"""The sizes of so many dispatches are uploaded at once, as far as they can be guessed."""

MOST_KNOWN: Final = 4096
"""The most sets of sizes whose variant is remembered."""

SizesKey = tuple[int, ...]


class Intermediates:
    """The memory between kernels, which all variants of a graph have in common: they never run at the same time."""

    def __init__(self, create: Callable[[int, str], wgpu.GPUBuffer]) -> None:
        self._create = create
        self._buffers: list[wgpu.GPUBuffer] = []
        self._all: list[wgpu.GPUBuffer] = []

    def take(self, index: int, byte_length: int) -> wgpu.GPUBuffer:
        """Return the buffer of this number, which has at least these bytes."""
        if index < len(self._buffers) and self._buffers[index].size >= byte_length:
            return self._buffers[index]
        buffer = self._create(byte_length, "intermediates")
        self._all.append(buffer)
        self._buffers[index : index + 1] = [buffer]
        return buffer

    def release(self) -> None:
        """Give all of it back."""
        for buffer in self._all:
            buffer.destroy()
        self._buffers, self._all = [], []

    @property
    def byte_length(self) -> int:
        """All of it."""
        return sum(buffer.size for buffer in self._all)


class SizedWgpuGraph(WgpuGraph):
    """A graph of which all sizes are known, in the memory that variants have in common.

    Args:
        graph: the graph.
        intermediates: the memory between kernels.
        resources: what the graphs of a context share.
    """

    def __init__(self, graph: Graph, intermediates: Intermediates, resources: GraphResources) -> None:
        self._intermediates = intermediates
        self._taken = 0
        super().__init__(graph, resources)

    def allocate(self, byte_length: int, label: str) -> wgpu.GPUBuffer:
        """Memory that lives as long as the graph; that between kernels is there for all variants."""
        if not label.startswith("intermediate"):
            return super().allocate(byte_length, label)
        self._taken += 1
        return self._intermediates.take(self._taken - 1, byte_length)


class Variant(SizedWgpuGraph):
    """The kernels for all sizes that answer alike; see the module's docstring.

    Args:
        dynamic: the graph, with sizes in its shapes.
        tracing: notes what is asked of them.
        intermediates: the memory between kernels.
        resources: what the graphs of a context share.
    """

    _joins = False  # sizes are uniforms of each kernel

    def __init__(
        self, dynamic: DynamicGraph, tracing: Tracing, intermediates: Intermediates, resources: GraphResources
    ) -> None:
        self._bounds = [dynamic.names.bounds[name] for name in dynamic.names.places]
        self._tables: dict[SizesKey, tuple[BufferCopy | None, list[tuple[int, int, int]]]] = {}
        self._last_key: SizesKey | None = None
        self._copy: BufferCopy | None = None
        self._marks = SizeMarks()
        self._ranges: dict[tuple[SymbolicSize, ...], BufferRange] = {}
        self._uniform_sizes: list[SymbolicSize] = []
        self._places: list[int] = []
        self._uniforms: wgpu.GPUBuffer | None = None
        self.tracing = attrs.evolve(tracing, may_specialize=True, mark=self._marks.mark)
        with self.tracing.active():
            super().__init__(dynamic.graph, intermediates, resources)
        self._resized = [step for step in self._steps if has_size(step.kernel.workgroups)]
        of_workgroups = [number for step in self._resized for number in step.kernel.workgroups]
        self._values = values_function([*self._uniform_sizes, *of_workgroups])

    def _take_written(self, kernel: Kernel) -> None:
        """Not before sizes have their places in the texts."""

    def _with_sizes(self, lowering: KernelSequence) -> Sequence[Kernel]:
        """Put the sizes of all kernels into one uniform buffer, equal ones once."""
        if any(self._marks.taken(kernel, self.tracing).sizes for kernel in lowering.prologue):
            raise UnwritableSizeError("a constant is laid out by a size that is known at dispatch only")
        kernels = [self._marks.taken(kernel, self.tracing) for kernel in lowering.nodes]
        distinct = dict.fromkeys(kernel.sizes for kernel in kernels if kernel.sizes)
        offset = 0
        places = {}
        for sizes in distinct:
            byte_length = -(-len(sizes) // 4) * 16
            places[sizes] = offset, byte_length
            offset += -(-byte_length // ALIGNMENT) * ALIGNMENT
        if places:
            usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
            self._uniforms = self._device.create_buffer(label="sizes", size=offset, usage=usage)
            self._owned.append(self._uniforms)
            self._ranges = {sizes: BufferRange(self._uniforms, *place) for sizes, place in places.items()}
            for sizes, (start, _) in places.items():
                self._places += range(start // 4, start // 4 + len(sizes))
                self._uniform_sizes += sizes
        return kernels

    def size_ranges(self, kernel: Kernel) -> tuple[BufferRange, ...]:
        """Return the range of the uniform buffer that has a kernel's sizes."""
        return (self._ranges[kernel.sizes],) if kernel.sizes else ()

    def resize(self, sizes: Sizes) -> None:
        """Be right for these sizes from the next launch on."""
        key = tuple(sizes.values())
        if key not in self._tables:
            self._make_table(sizes, key)
        self._copy, workgroups = self._tables[key]
        for index, step in enumerate(self._resized):
            step.workgroups = workgroups[index]

    def _make_table(self, sizes: Sizes, key: SizesKey) -> None:
        """Upload the words for these sizes, and for those that come next if sizes go on growing as they did."""
        steps = [now - before for now, before in zip(key, self._last_key or key, strict=True)]
        self._last_key = key
        keys = [tuple(size + ahead * step for size, step in zip(key, steps, strict=True)) for ahead in range(AHEAD)]
        within = [one for one in dict.fromkeys(keys) if self._is_within(one)]
        rows = [self._values(dict(zip(sizes, one, strict=True))) for one in within]
        copies: list[BufferCopy | None] = [None] * len(rows)
        count = len(self._places)
        if self._uniforms is not None:
            words = np.zeros((len(rows), self._uniforms.size // 4), np.uint32)
            words[:, self._places] = np.array([row[:count] for row in rows], np.int64).astype(np.uint32)
            usage = wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
            table = self._device.create_buffer(label="sizes", size=words.nbytes, usage=usage)
            self._queue.fill(table, words, words.nbytes)
            length = self._uniforms.size
            copies = [BufferCopy(table, self._uniforms, length, index * length) for index in range(len(rows))]
        if len(self._tables) >= MOST_KNOWN:
            self._tables.clear()
        for one, copy, row in zip(within, copies, rows, strict=True):
            rest = iter(row[count:])
            self._tables[one] = copy, list(zip(rest, rest, rest, strict=True))

    def _is_within(self, key: SizesKey) -> bool:
        return all(low <= size <= high for size, (low, high) in zip(key, self._bounds, strict=True))

    def run(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Launch all kernels, behind a copy of their sizes."""
        sizes = [] if self._copy is None else [self._copy]
        self._queue.launch([*sizes, *(step.launch(inputs, outputs) for step in self._steps)])

    def timed(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> TimedLaunches:
        """Submit all kernels with timestamps, behind a copy of their sizes."""
        if self._copy is not None:
            self._queue.run([self._copy])
        return super().timed(inputs, outputs)

    def release(self) -> None:
        """Give the memory back, that of tables as well."""
        super().release()
        self._tables = {}
        self._copy = None


@attrs.frozen(eq=False)
class CompiledVariant:
    """Kernels, the test for the sizes that they are right for, and the function that sets the sizes."""

    graph: WgpuGraph
    covers: Callable[[Sizes], bool]
    resize: Callable[[Sizes], None]


class DynamicWgpuGraph:
    """A compiled graph with named dimensions: the variants that were needed so far.

    Args:
        dynamic: what to compile, first for the largest sizes.
        resources: what the graphs of a context share.
    """

    def __init__(self, dynamic: DynamicGraph, resources: GraphResources) -> None:
        self._dynamic = attrs.evolve(dynamic, graph=with_constants(dynamic.graph, _keyed))
        self._resources = resources
        self._variants: list[CompiledVariant] = []
        self._unheld: set[Memory] = set()  # constants in forms that only later variants use
        self._known: dict[SizesKey, CompiledVariant] = {}
        self._names = list(dynamic.names.places)
        self._axes = list(dynamic.names.places.values())
        self._current: tuple[SizesKey, WgpuGraph] | None = None
        self.seconds: float | None = None  # what a run is known to take, for waiting
        self.ahead = None  # what is launched depends on sizes
        self._intermediates = Intermediates(
            lambda size, label: resources.device.create_buffer(label=label, size=padded(size), usage=STORAGE)
        )
        first = self._compiled(dynamic.names.largest).graph
        self.plan, self.passes = first.plan, first.passes
        self.shared = first.shared
        self._unheld.difference_update(self.shared)
        self.byte_length = first.byte_length + self._intermediates.byte_length

    # --- variants --------------------------------------------------------------------------------------------

    def is_ready(self, inputs: Mapping[str, Storage]) -> bool:
        """Return whether nothing has to be compiled for a dispatch with these inputs."""
        return self._found(self._sizes(inputs)) is not None

    def prepare(self, inputs: Mapping[str, Storage]) -> WgpuGraph | None:
        """Compile what a dispatch with these inputs needs, in a worker thread.

        Returns:
            What has to go for it, to be released once the GPU has finished with it.
        """
        self._compiled(dict(zip(self._names, self._sizes(inputs), strict=True)))
        if len(self._variants) <= MOST_VARIANTS:
            return None
        self._known.clear()
        self._current = None
        return self._variants.pop(0).graph

    def _sizes(self, inputs: Mapping[str, Storage]) -> SizesKey:
        return tuple([inputs[name].descriptor.shape[axis] for name, axis in self._axes])

    def _found(self, key: SizesKey) -> CompiledVariant | None:
        """Return the variant that is right for these sizes, if there is one."""
        found = self._known.get(key)
        if found is None:
            sizes = dict(zip(self._names, key, strict=True))
            found = next((variant for variant in reversed(self._variants) if variant.covers(sizes)), None)
            if found is not None:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[key] = found
        return found

    def _compiled(self, sizes: Sizes) -> CompiledVariant:
        variant = self._variant(sizes)
        self._variants.append(variant)
        self._unheld.update(variant.graph.shared)
        return variant

    def _variant(self, sizes: Sizes) -> CompiledVariant:
        """Kernels for all sizes that answer alike; where texts cannot be written so, for these sizes alone."""
        if self._dynamic.covers(sizes):
            tracing = Tracing(sizes, answers=dict(self._dynamic.drawing.answers))
            try:
                variant = Variant(self._dynamic, tracing, self._intermediates, self._resources)
            except (UnwritableSizeError, CompilationError, UnknownSizeError):
                pass
            else:
                return CompiledVariant(variant, coverage(variant.tracing), variant.resize)
        exact = dict(sizes)
        graph = SizedWgpuGraph(self._dynamic.at(sizes).graph, self._intermediates, self._resources)
        return CompiledVariant(graph, lambda other: dict(other) == exact, lambda _sizes: None)

    # --- running ---------------------------------------------------------------------------------------------

    def run(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Launch all kernels."""
        self._at(inputs).run(inputs, outputs)

    def timed(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> TimedLaunches:
        """Submit all kernels by themselves, with timestamps."""
        return self._at(inputs).timed(inputs, outputs)

    def _at(self, inputs: Mapping[str, Storage]) -> WgpuGraph:
        """Return the kernels for these inputs, with their sizes set."""
        key = self._sizes(inputs)
        if self._current is None or self._current[0] != key:
            sizes = dict(zip(self._names, key, strict=True))
            variant = self._found(key) or self._compiled(sizes)
            self._variants.remove(variant)
            self._variants.append(variant)
            variant.resize(sizes)
            self._current = key, variant.graph
        return self._current[1]

    def release(self) -> None:
        """Give the memory back; the GPU keeps it until it has finished with it."""
        for variant in self._variants:
            variant.graph.release()
        for memory in self._unheld:
            if not memory.holders and memory.data is not None:
                data, memory.data = memory.data, None
                data.destroy()
        self._intermediates.release()
        self._variants, self._unheld, self._known, self._current = [], set(), {}, None


def _keyed(constant: Constant) -> Constant:
    """Return a constant that all variants have in common."""
    data = constant.data.data if isinstance(constant.data, Storage) else constant.data
    return Constant(constant.descriptor, data, constant.key or os.urandom(16))
