"""A kernel that runs many small ones as its steps: the memory of intermediates, and the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.joining.step import KernelStep
from webnn_py.devices.wgpu.codegen.joining.views import Kind, View, common
from webnn_py.devices.wgpu.codegen.module import Binding, declare
from webnn_py.devices.wgpu.codegen.snippets import SNIPPETS
from webnn_py.devices.wgpu.records.buffer import Buffer, padded
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.kernel import Kernel

MOST_BUFFERS: Final = 16
"""The most buffers that a kernel binds, whatever the adapter's limit."""

MOST_TEXT: Final = 32_000
"""The most characters of a source: drivers compile one long kernel more slowly than several short ones."""

LABELS: Final = 3
"""The most distinct labels of steps in the label of a kernel."""

Array = tuple[str, Kind, int]
"""The name, element kind and length of an array in workgroup memory."""


@attrs.frozen
class BufferLifetimes:
    """The first and the last use of each buffer, by the index of the kernel."""

    first: Mapping[Buffer, int]
    last: Mapping[Buffer, int]

    @classmethod
    def from_kernels(cls, kernels: Sequence[Kernel]) -> BufferLifetimes:
        """Return the lifetimes of the buffers of kernels."""
        used = [(buffer, number) for number, kernel in enumerate(kernels) for buffer in (*kernel.reads, *kernel.writes)]
        return cls(dict(reversed(used)), dict(used))

    def is_within(self, buffer: Buffer, begin: int, end: int) -> bool:
        """Return whether a buffer is an intermediate that only the kernels in [begin, end) use."""
        return buffer.kind == "block" and self.first[buffer] >= begin and self.last[buffer] < end


class JoinedKernel:
    """A kernel of several; intermediates that only they use are kept in workgroup memory if they fit.

    Args:
        kernels: the kernels to join.
        steps: the kernels as steps.
        lifetimes: the lifetimes of the buffers of all kernels of the graph.
        begin: the index of the first kernel to join.
        features: the adapter's features and limits.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        steps: Sequence[KernelStep],
        lifetimes: BufferLifetimes,
        begin: int,
        features: Features,
    ) -> None:
        self._kernels = kernels
        self._steps = steps
        self._invocations = max(step.invocations for step in steps)
        self._written = {buffer for kernel in kernels for buffer in kernel.writes}
        self._arrays: dict[str, Array] = {}
        self._held = kinds_held(kernels, steps)
        self._names: dict[tuple[Buffer, Kind], str] = {}
        self._views: dict[View, None] = {}
        self._places: dict[Buffer, str] = {}
        self._numbered: dict[tuple[str, tuple[str, ...]], tuple[int, str]] = {}
        self._calls: dict[tuple[int, int], str] = {}
        self._program: list[int] = []
        self._room = features.max_workgroup_storage
        self._buffers = min(MOST_BUFFERS, features.max_storage_buffers)
        for step in steps:
            self._share(step)
        self._write(lifetimes, begin)

    def _share(self, step: KernelStep) -> None:
        """Declare the arrays of a step under names of their type and length, by which steps share them."""
        for name, kind, length in self._arrays_of(step).values():
            if name not in self._arrays:
                self._add(name, kind, length)

    def _add(self, name: str, kind: Kind, length: int) -> None:
        self._arrays[name] = (name, kind, length)
        self._room -= -(-length * kind.byte_length // 16) * 16

    @staticmethod
    def _arrays_of(step: KernelStep) -> dict[str, Array]:
        """Return the arrays of a step, by their names in the step."""
        seen: Counter[tuple[Kind, int]] = Counter()
        arrays = {}
        for name, kind, length in step.shared:
            seen[kind, length] += 1
            arrays[name] = (f"shared_{kind.word}_{length}_{seen[kind, length]}", kind, length)
        return arrays

    def _write(self, lifetimes: BufferLifetimes, begin: int) -> None:
        end = begin + len(self._steps)
        idle: dict[tuple[Kind, int], list[str]] = {}
        for number, (kernel, step) in enumerate(zip(self._kernels, self._steps, strict=True), begin):
            buffers = dict.fromkeys((*kernel.reads, *kernel.writes))
            for buffer in buffers:
                if lifetimes.is_within(buffer, begin, end) and lifetimes.first[buffer] == number:
                    self._allocate(buffer, idle)
            self._append(kernel, step)
            for buffer in buffers:
                if lifetimes.last[buffer] == number and buffer in self._places:
                    name, kind, length = self._arrays[self._places[buffer]]
                    idle.setdefault((kind, length), []).append(name)

    def _allocate(self, buffer: Buffer, idle: Mapping[tuple[Kind, int], list[str]]) -> None:
        """Allocate an intermediate in workgroup memory, if there is room."""
        kind = self._held[buffer]
        length = -(-padded(buffer.byte_length) // kind.byte_length)
        if free := idle.get((kind, length)):
            self._places[buffer] = free.pop()
        elif self._room >= padded(buffer.byte_length):
            name = self._places[buffer] = f"between_{len(self._arrays)}"
            self._add(name, kind, length)

    def _name(self, buffer: Buffer, kind: Kind) -> str:
        if buffer in self._places:
            return self._places[buffer]
        return self._names.setdefault((buffer, kind), f"buffer_{len(self._names)}")

    def _append(self, kernel: Kernel, step: KernelStep) -> None:
        names, views = {}, {}
        for buffer, (name, kind) in zip((*kernel.reads, *kernel.writes), step.bindings, strict=True):
            held = self._held.get(buffer, kind)
            names[name] = self._name(buffer, held)
            if held != kind:
                views[name] = View(names[name], held.scalar, kind)
        key = kernel.source, tuple(names.values())
        if key not in self._numbered:
            self._views |= dict.fromkeys(views.values())
            number = len(self._numbered)
            arrays = {name: array for name, (array, *_) in self._arrays_of(step).items()}
            self._numbered[key] = number, step.function(number, {**names, **arrays}, views)
        number = self._numbered[key][0]
        self._calls[number, kernel.workgroups[0]] = step.call(number, kernel.workgroups[0], self._invocations)
        self._program.append(list(self._calls).index((number, kernel.workgroups[0])))

    @property
    def fits(self) -> bool:
        """True if the kernel is within its limits of buffers, workgroup memory and source length."""
        return len(self._names) <= self._buffers and self._room >= 0 and len(self._source()) <= MOST_TEXT

    def kernel(self) -> Kernel:
        reads, writes = self._bound()
        labels = Counter(kernel.label for kernel in self._kernels)
        parts = [label if count == 1 else f"{count} × {label}" for label, count in labels.items()]
        return Kernel(
            ", ".join(parts[:LABELS]) + (" and others" if len(parts) > LABELS else ""),
            self._source(),
            tuple(buffer for buffer, *_ in reads),
            tuple(buffer for buffer, *_ in writes),
            (1, 1, 1),
            tuple(node for kernel in self._kernels for node in kernel.nodes),
            tuple(sorted({place for kernel in self._kernels for place in kernel.drawn})),
        )

    def _bound(self) -> tuple[list[Binding], list[Binding]]:
        bound = [(buffer, name, kind.text) for (buffer, kind), name in self._names.items()]
        reads = [binding for binding in bound if binding[0] not in self._written]
        return reads, [binding for binding in bound if binding[0] in self._written]

    def _source(self) -> str:
        return "\n".join(self._parts())

    def _parts(self) -> Iterator[str]:
        yield "".join(dict.fromkeys(line for step in self._steps for line in step.enabled))
        yield from (SNIPPETS[name] for name in dict.fromkeys(name for step in self._steps for name in step.helpers))
        yield declare(*self._bound())
        for name, kind, length in self._arrays.values():
            yield f"var<workgroup> {name}: array<{kind.text}, {length}>;"
        steps = "\n".join(text for _, text in self._numbered.values())
        for view in self._views:
            yield from view.functions(steps)
        yield steps
        program = ", ".join(f"{number}u" for number in self._program)
        yield f"const program = array<u32, {len(self._program)}>({program});"
        yield f"@compute @workgroup_size({self._invocations})"
        has_lanes = any("subgroup_invocation_id" in step.builtins for step in self._steps)
        lane = ", @builtin(subgroup_invocation_id) lane: u32" if has_lanes else ""
        yield f"fn main(@builtin(local_invocation_index) t: u32{lane}) {{"
        yield f"for (var step = 0u; step < {len(self._program)}u; step++) {{\nswitch program[step] {{"
        yield from (f"case {number}u: {{ {call} }}" for number, call in enumerate(self._calls.values()))
        # Buffers need a barrier of their own.
        yield f"default: {{}}\n}}\n{'storageBarrier(); ' if self._reads_written else ''}workgroupBarrier();\n}}\n}}\n"

    @property
    def _reads_written(self) -> bool:
        """True if a step reads a buffer, not workgroup memory, that another step writes."""
        kept = self._places.keys()
        return any(
            buffer in self._written and buffer not in kept for kernel in self._kernels for buffer in kernel.reads
        )


def kinds_held(kernels: Sequence[Kernel], steps: Sequence[KernelStep]) -> dict[Buffer, Kind]:
    """Return the element kind by which each intermediate or output is stored, if all steps' views of it allow one."""
    seen: dict[Buffer, dict[Kind, None]] = {}
    for kernel, step in zip(kernels, steps, strict=True):
        for buffer, (_, kind) in zip((*kernel.reads, *kernel.writes), step.bindings, strict=True):
            if buffer.kind in ("block", "output"):
                seen.setdefault(buffer, {})[kind] = None
    held = {buffer: common(kinds) for buffer, kinds in seen.items()}
    return {buffer: kind for buffer, kind in held.items() if kind is not None}
