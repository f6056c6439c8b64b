"""A small kernel's text as a step of another: its functions under other names, and no entry point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.joining.views import Kind, View, can_be_viewed, viewed
from webnn_py.device.on_wgpu.codegen.snippets import SNIPPETS
from webnn_py.device.on_wgpu.records.kernel import Kernel

MOST_CHARACTERS: Final = 8000
"""A kernel with a longer text is none that waits for launches more than it computes."""

MOST_WORKGROUPS: Final = 2
"""A step takes its workgroups one after the other, which is worth a launch for so many."""

ARGUMENTS: Final = {
    "workgroup_id": "vec3<u32>(group, 0u, 0u)",
    "global_invocation_id": "vec3<u32>(group * {invocations}u + t, 0u, 0u)",
    "local_invocation_index": "t",
    "subgroup_invocation_id": "lane",
}
"""What a step is given for its builtins, by the number of its workgroup, and of an invocation and its lane."""

_ENTRY: Final = re.compile(r"@compute @workgroup_size\((\d+)\)\s*fn main\(([^{]*)\)\s*\{")
_PARAMETER: Final = re.compile(r"@builtin\((\w+)\) (\w+: [\w<>]+)")
_BINDING: Final = re.compile(r"^@group\(0\) @binding\(\d+\) var<storage, \w+> (\w+): array<(.*)>;\n", re.MULTILINE)
_SHARED: Final = re.compile(r"^var<workgroup> (\w+): array<([\w<>]+), (\d+)>;\n", re.MULTILINE)
_ENABLED: Final = re.compile(r"^enable .*;\n", re.MULTILINE)
_DECLARED: Final = re.compile(r"^(?:fn|const|struct|alias) (\w+)", re.MULTILINE)
_UNKNOWN: Final = re.compile(r"\bvar<(?!function)|\boverride\b|\batomic|\barrayLength\b|^@", re.MULTILINE)


@attrs.frozen
class KernelStep:
    """The text of a kernel of few workgroups of one dimension.

    Attributes:
        invocations: of a workgroup.
        bindings: name and kind of the elements, in the order of the kernel's reads and writes.
        shared: likewise of the arrays in the workgroup's memory, with their lengths.
        enabled: what the text has to enable.
        helpers: the names of the helper functions that it calls.
        builtins: what its entry point is given.
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
    def of(cls, kernel: Kernel) -> KernelStep | None:
        """The step that a kernel can be, or None."""
        if prod(kernel.workgroups) > MOST_WORKGROUPS or kernel.workgroups[0] != prod(kernel.workgroups):
            return None
        if kernel.sizes or len(kernel.source) > MOST_CHARACTERS:
            return None
        return _read(kernel.source)

    @property
    def is_whole(self) -> bool:
        """Whether all invocations of a workgroup have to take it, since they wait for each other."""
        return "Barrier()" in self._text or "subgroup" in self._text

    def function(self, number: int, names: Mapping[str, str], views: Mapping[str, View]) -> str:
        """The functions of the step with this number; its entry point is called ``step_NUMBER``.

        Args:
            number: of the step.
            names: of all that is bound, and of the arrays in the workgroup's memory, by the names that it has for it.
            views: of what is bound, those that are seen as elements of another kind than they have.
        """
        renamed = {name: f"{name}_{number}" for name in self._names} | {"main": f"step_{number}", **names}
        pattern = re.compile(rf"(?<![.\w])(?:{'|'.join(map(re.escape, renamed))})\b")
        return pattern.sub(lambda match: renamed[match[0]], viewed(self._text, views))

    def call(self, number: int, workgroups: int, invocations: int) -> str:
        """The statements that take the step with this number, in a workgroup of so many invocations."""
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
    kinds = {kind: Kind.of(kind) for _, kind, *_ in (*bindings, *shared)}
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
