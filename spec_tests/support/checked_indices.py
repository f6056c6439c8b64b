"""Checks in the shaders that every index lies in its buffer or array: ``pytest --check-indices``.

The library's own modules have no such checks, since all indices are in range by construction. Checked, most tests take
several times as long.
"""

import re

import attrs

from webnn_py.device.on_wgpu import backend, pipelines
from webnn_py.device.on_wgpu.compiled import WgpuGraph
from webnn_py.device.on_wgpu.memory import STORAGE
from webnn_py.device.on_wgpu.pipelines import Pipelines

OPTION = "--check-indices"

BUFFER = re.compile(r"var<storage, \w+> (\w+): array<")
ARRAY = re.compile(r"var<workgroup> (\w+): array<.*, *(\d+)u?>;")
DIRECTIVE = re.compile(r"^enable .*;$", re.MULTILINE)


def with_checks(code, number):
    """A module's code that stores ``number`` in one buffer more if an index lies outside, and uses 0 instead."""
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


def check_indices(patch):
    """From now on a dispatch fails in which an index lies outside; ``patch`` is pytest's monkeypatch."""
    flags = {}
    labels = {}
    number_of = {}
    make_module, layout, bind = pipelines.trusted_module, Pipelines._layout, WgpuGraph.bind
    run, release, features_of = WgpuGraph.run, WgpuGraph.release, backend.features_of

    def make_checked_module(device, code, label):
        number = number_of.setdefault(code, len(number_of) + 1)
        labels[number] = label
        return make_module(device, with_checks(code, number), label)

    def bind_flag(self, kernel, buffers):
        if self not in flags:
            flags[self] = self._device.create_buffer(size=4, usage=STORAGE)
        return bind(self, kernel, [*buffers, flags[self]])

    def run_and_check(self, inputs, outputs):
        run(self, inputs, outputs)
        self._queue.submit()
        number = self._device.queue.read_buffer(flags[self]).cast("I")[0] if self in flags else 0
        if number:
            raise IndexError(f"an index lies outside in the kernel {labels[number]!r}")

    def release_flag(self):
        if self in flags:
            flags.pop(self).destroy()
        release(self)

    def leave_one_buffer(device):
        features = features_of(device)
        return attrs.evolve(features, max_storage_buffers=features.max_storage_buffers - 1)

    patch.setattr(pipelines, "trusted_module", make_checked_module)
    patch.setattr(Pipelines, "_layout", lambda self, reads, writes: layout(self, reads, writes + 1 if writes else 0))
    patch.setattr(WgpuGraph, "bind", bind_flag)
    patch.setattr(WgpuGraph, "run", run_and_check)
    patch.setattr(WgpuGraph, "release", release_flag)
    patch.setattr(backend, "features_of", leave_one_buffer)
