"""WGSL modules: their bindings, the helper functions that their code calls, and the kernels made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import Dispatch
from webnn_py.devices.wgpu.codegen.snippets import SNIPPETS
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.kernel import Kernel, writable

Binding = tuple[Buffer, str, str]
"""A buffer, its name in a module, and the WGSL element type of the array that it is bound as."""

EPILOGUE_FUNCTIONS: Final = ("finish", "ended")
"""The functions of :class:`~webnn_py.devices.wgpu.codegen.epilogue.Epilogue` that drivers inline at each call."""

_CALL: Final = re.compile(r"\b(\w++)\(")

_DIRECTIVES: Final = {
    "enable f16;\n": re.compile(r"f16(?<=\bf16)\b"),
    "enable subgroups;\n": re.compile("subgroup"),
    # The lanes of a subgroup go the same way behind subgroupAny(), which compilers cannot prove.
    "diagnostic(off, subgroup_uniformity);\n": re.compile(r"if \(subgroupAny\("),
}
"""Directives, and what asks for each; the searches are fast since they start with literal characters."""


@attrs.define
class Bindings:
    """The buffers that a module binds, each once per element type.

    Attributes:
        prefix: the start of the names, which are numbered.
    """

    prefix: str
    _names: dict[tuple[Buffer, str], str] = attrs.field(factory=dict, init=False)

    def name(self, buffer: Buffer, kind: str) -> str:
        """Return the name of a buffer that is bound as an array of ``kind``."""
        return self._names.setdefault((buffer, kind), f"{self.prefix}{len(self._names)}")

    def __iter__(self) -> Iterator[Binding]:
        return ((buffer, name, kind) for (buffer, kind), name in self._names.items())

    def __len__(self) -> int:
        return len(self._names)


def declare(reads: Sequence[Binding], writes: Sequence[Binding]) -> str:
    """Return the declarations of a module's bindings, those that are read first."""
    access = writable([buffer for buffer, _, _ in reads], [buffer for buffer, _, _ in writes])
    lines = [
        f"@group(0) @binding({index}) var<storage, {'read_write' if written else 'read'}> {name}: array<{kind}>;"
        for index, ((_, name, kind), written) in enumerate(zip((*reads, *writes), access, strict=True))
    ]
    return "\n".join(lines) + "\n"


def module(*parts: str, main: str = "") -> str:
    """Return a WGSL module: directives, the helper functions that the parts call, and the parts.

    ``main`` comes last and is not searched for calls of helpers, which saves time if it is long.
    """
    body = "\n".join(parts)
    helpers = dict.fromkeys(helper for name in _called(body) for helper in _with_callees(name))
    directives = (text for text, used in _DIRECTIVES.items() if used.search(body) or used.search(main))
    return "\n".join(["".join(directives), *(SNIPPETS[name] for name in helpers), body, main])


def bound_kernel(
    label: str,
    reads: Iterable[Binding],
    writes: Iterable[Binding],
    parts: Sequence[str],
    workgroups: Dispatch,
    main: str = "",
) -> Kernel:
    """Return the kernel of a module with these bindings; see :func:`module` for ``parts`` and ``main``."""
    read, written = list(reads), list(writes)
    source = module(declare(read, written), *parts, main=main)
    buffers = [tuple(buffer for buffer, _, _ in bound) for bound in (read, written)]
    return Kernel(label, source, buffers[0], buffers[1], workgroups)


def length_with_helpers(text: str) -> int:
    """Return the length of code in characters, with that of every helper function at each of its calls."""
    calls = [name for name in _CALL.findall(text) if name in SNIPPETS]
    return len(text) + sum(len(SNIPPETS[helper]) for name in calls for helper in _with_callees(name))


def effort(source: str) -> int:
    """Estimate the characters that a driver compiles: it inlines the epilogue at each call."""
    calls = sum(source.count(f"{name}(") for name in EPILOGUE_FUNCTIONS)
    return len(source) + calls * len(source.partition("@compute")[0])


def _called(text: str) -> list[str]:
    """Return the names of the helper functions that code calls."""
    return [name for name in dict.fromkeys(_CALL.findall(text)) if name in SNIPPETS]


@cache
def _with_callees(name: str) -> tuple[str, ...]:
    """Return the names of the helper functions that one depends on, callees first and itself last."""
    inner = (callee for called in _called(SNIPPETS[name]) if called != name for callee in _with_callees(called))
    return (*dict.fromkeys(inner), name)
