"""A small kernel as a step of a joined one: its functions are renamed, and its entry point is one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.joining.views import Kind, View, can_be_viewed, viewed
from webnn_py.devices.wgpu.codegen.snippets import SNIPPETS
from webnn_py.devices.wgpu.records.kernel import Kernel

MOST_CHARACTERS: Final = 8000
"""The longest source of a step: in longer kernels, launch latency does not dominate."""

MOST_WORKGROUPS: Final = 2
"""The most workgroups of a step, which run one after the other."""

ARGUMENTS: Final = {
    "workgroup_id": "vec3<u32>(group, 0u, 0u)",
    "global_invocation_id": "vec3<u32>(group * {invocations}u + t, 0u, 0u)",
    "local_invocation_index": "t",
    "subgroup_invocation_id": "lane",
}
"""The values of a step's builtins, by the index of its workgroup, the invocation and its lane."""

_ENTRY: Final = re.compile(r"@compute @workgroup_size\((\d+)\)\s*fn main\(([^{]*)\)\s*\{")
_PARAMETER: Final = re.compile(r"@builtin\((\w+)\) (\w+: [\w<>]+)")
_BINDING: Final = re.compile(r"^@group\(0\) @binding\(\d+\) var<storage, \w+> (\w+): array<(.*)>;\n", re.MULTILINE)
_SHARED: Final = re.compile(r"^var<workgroup> (\w+): array<([\w<>]+), (\d+)>;\n", re.MULTILINE)
_ENABLED: Final = re.compile(r"^enable .*;\n", re.MULTILINE)
_DECLARED: Final = re.compile(r"^(?:fn|const|struct|alias) (\w+)", re.MULTILINE)
_UNKNOWN: Final = re.compile(r"\bvar<(?!function)|\boverride\b|\batomic|\barrayLength\b|^@", re.MULTILINE)


@attrs.frozen
class KernelStep:
    """The parsed source of a kernel of few workgroups, in one dimension.

    Attributes:
        invocations: the invocations of a workgroup.
        bindings: the names and element kinds of the bindings, reads before writes.
        shared: the names, element kinds and lengths of the arrays in workgroup memory.
        enabled: the ``enable`` directives.
        helpers: the names of the helper functions that it calls.
        builtins: the builtins of the entry point's parameters.
    """

    invocations: int
    bindings: tuple[tuple[str, Kind], ...]
    shared: tuple[tuple[str, Kind, int], ...]
    enabled: tuple[str, ...]
    helpers: tuple[str, ...]
    builtins: tuple[str, ...]
    _text: str
    _names: tuple[str, ...]

    @classmethod
    def from_kernel(cls, kernel: Kernel) -> KernelStep | None:
        """Return a kernel as a step; None if it cannot be one."""
        if prod(kernel.workgroups) > MOST_WORKGROUPS or kernel.workgroups[0] != prod(kernel.workgroups):
            return None
        if kernel.copies or len(kernel.source) > MOST_CHARACTERS:
            return None
        return _read(kernel.source)

    @property
    def is_whole(self) -> bool:
        """True if all invocations of a workgroup have to run it, as it has barriers or subgroup operations."""
        return "Barrier()" in self._text or "subgroup" in self._text

    def function(self, number: int, names: Mapping[str, str], views: Mapping[str, View]) -> str:
        """Return the functions of the step; its entry point becomes ``step_NUMBER``.

        Args:
            number: the number of the step.
            names: the new names of bindings and arrays in workgroup memory, by their names in the step.
            views: the bindings whose arrays are stored by another element kind.
        """
        renamed = {name: f"{name}_{number}" for name in self._names} | {"main": f"step_{number}", **names}
        pattern = re.compile(rf"(?<![.\w])(?:{'|'.join(map(re.escape, renamed))})\b")
        return pattern.sub(lambda match: renamed[match[0]], viewed(self._text, views))

    def call(self, number: int, workgroups: int, invocations: int) -> str:
        """Return the statements that run the step in a workgroup of ``invocations``."""
        given = ", ".join(ARGUMENTS[builtin].format(invocations=self.invocations) for builtin in self.builtins)
        call = f"step_{number}({given});"
        if self.invocations < invocations:
            call = f"if (t < {self.invocations}u) {{ {call} }}"
        if workgroups == 1:
            return f"const group = 0u; {call}"
        return f"for (var group = 0u; group < {workgroups}u; group++) {{ {call} workgroupBarrier(); }}"


@lru_cache(256)
def _read(source: str) -> KernelStep | None:
    entry = _ENTRY.search(source)
    if entry is None:
        return None
    text = _ENABLED.sub("", source)
    helpers = tuple(name for name, helper in SNIPPETS.items() if f"{helper}\n" in text)
    for name in helpers:
        text = text.replace(f"{SNIPPETS[name]}\n", "", 1)
    bindings, shared = _BINDING.findall(text), _SHARED.findall(text)
    parameters = _PARAMETER.findall(entry[2])
    declared = ", ".join(parameter for _, parameter in parameters)
    text = _SHARED.sub("", _BINDING.sub("", text)).replace(entry[0], f"fn main({declared}) {{")
    builtins = tuple(builtin for builtin, _ in parameters)
    kinds = {kind: Kind.from_text(kind) for _, kind, *_ in (*bindings, *shared)}
    if _UNKNOWN.search(text) or not ARGUMENTS.keys() >= set(builtins) or None in kinds.values():
        return None
    if not can_be_viewed(text, [name for name, _ in bindings]):
        return None
    known = {text: kind for text, kind in kinds.items() if kind is not None}
    return KernelStep(
        int(entry[1]),
        tuple((name, known[kind]) for name, kind in bindings),
        tuple((name, known[kind], int(count)) for name, kind, count in shared),
        tuple(_ENABLED.findall(source)),
        helpers,
        builtins,
        text,
        tuple(name for name in _DECLARED.findall(text) if name != "main"),
    )
