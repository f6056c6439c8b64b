"""Checks in the shaders that every index lies in its buffer or array: ``pytest --check-indices``.

The library's own modules have no such checks, since all indices are in range by construction. Checked, most tests take
several times as long.
"""

import re

import attrs

from webnn_py.devices.wgpu import backend
from webnn_py.devices.wgpu.passes.arena import BufferRange
from webnn_py.devices.wgpu.runtime.executable import WgpuGraph
from webnn_py.devices.wgpu.runtime.memory import STORAGE
from webnn_py.devices.wgpu.runtime.pipelines import Pipelines

OPTION = "--check-indices"

BUFFER = re.compile(r"var<storage, \w+> (\w+): array<")
ARRAY = re.compile(r"var<workgroup> (\w+): array<.*, *(\d+)u?>;")
DIRECTIVE = re.compile(r"^(?:enable|diagnostic).*;$", re.MULTILINE)


def with_checks(code, number):
    """Return a module's code that stores ``number`` in one buffer more if an index lies outside, and uses 0 instead."""
    buffers, arrays = BUFFER.findall(code), dict(ARRAY.findall(code))
    lengths = {name: f"arrayLength(&{name})" for name in buffers} | {name: f"{size}u" for name, size in arrays.items()}
    checks = "".join(
        f"fn checked_{name}(i: u32) -> u32 {{\n"
        f"  if (i >= {length}) {{ atomicMax(&flag_of_indices, {number}u); return 0u; }}\n"
        f"  return i;\n}}\n"
        for name, length in lengths.items()
    )
    flag = f"@group(0) @binding({len(buffers)}) var<storage, read_write> flag_of_indices: atomic<u32>;\n"
    indexed = re.compile(rf"(?<![\w.])({'|'.join(lengths)})\[")
    return "\n".join([*DIRECTIVE.findall(code), flag, checks, call_checks(DIRECTIVE.sub("", code), indexed)])


def call_checks(code, indexed):
    """The code with a call around every index of what ``indexed`` finds."""
    parts, start = [], 0
    while (found := indexed.search(code, start)) is not None:
        end = closing_bracket(code, found.end())
        index = call_checks(code[found.end() : end], indexed)
        parts.append(f"{code[start : found.end()]}checked_{found[1]}({index})")
        start = end
    return "".join([*parts, code[start:]])


def closing_bracket(code, place):
    """The place of the bracket that closes one just before ``place``."""
    depth = 1
    while depth:
        depth += {"[": 1, "]": -1}.get(code[place], 0)
        place += 1
    return place - 1


class Checks:
    """Wrappers of the library's functions: each method takes the original function first."""

    def __init__(self):
        self.flags = {}
        self.numbers = {}

    def make(self, make, pipelines, kernel, layout):
        number = self.numbers.setdefault((kernel.label, kernel.source), len(self.numbers) + 1)
        return make(pipelines, attrs.evolve(kernel, source=with_checks(kernel.source, number)), layout)

    def make_layout(self, make, pipelines, writable):
        is_for_kernels = any(writable)
        return make(pipelines, (*writable, True) if is_for_kernels else writable)

    def bind(self, bind, graph, kernel, ranges):
        if graph not in self.flags:
            self.flags[graph] = graph._device.create_buffer(size=4, usage=STORAGE)
        return bind(graph, kernel, [*ranges, BufferRange.whole(self.flags[graph])])

    def run(self, run, graph, *storages):
        run(graph, *storages)
        graph._queue.submit()
        if graph in self.flags:
            number = graph._device.queue.read_buffer(self.flags[graph]).cast("I")[0]
            if number:
                label, _code = list(self.numbers)[number - 1]
                raise IndexError(f"an index lies outside in the kernel {label!r}")

    def release(self, release, graph):
        if graph in self.flags:
            self.flags.pop(graph).destroy()
        release(graph)

    def features_of(self, features_of, device):
        features = features_of(device)
        return attrs.evolve(features, max_storage_buffers=features.max_storage_buffers - 1)


def check_indices(patch):
    """Make each later dispatch fail in which an index lies outside; ``patch`` is pytest's monkeypatch."""
    checks = Checks()
    for owner, name, around in (
        (Pipelines, "_make", checks.make),
        (Pipelines, "_layout", checks.make_layout),
        (WgpuGraph, "bind", checks.bind),
        (WgpuGraph, "run", checks.run),
        (WgpuGraph, "run_now", checks.run),
        (WgpuGraph, "release", checks.release),
        (backend, "features_of", checks.features_of),
    ):
        patch.setattr(owner, name, with_first(around, getattr(owner, name)))


def with_first(around, function):
    """Return a function that calls ``around`` with ``function`` first; a plain function, which classes bind."""
    return lambda *arguments: around(function, *arguments)
