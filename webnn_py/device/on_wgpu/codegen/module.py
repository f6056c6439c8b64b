"""WGSL modules: what they bind, and the helper functions that their text calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from webnn_py.device.on_wgpu.codegen.snippets import SNIPPETS
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.kernel import writable

Binding = tuple[Buffer, str, str]
"""A buffer, its name in a module, and the WGSL type of the elements of the array that it is there."""

LAST_STEPS: Final = ("finish", "ended")
"""The functions that end an operator (:class:`~webnn_py.device.on_wgpu.codegen.epilogue.Epilogue`)."""

_CALL: Final = re.compile(r"\b(\w++)\(")

_FLOAT16: Final = re.compile(r"f16(?<=\bf16)\b")  # it begins with letters, which makes it fast


def declare(reads: Sequence[Binding], writes: Sequence[Binding]) -> str:
    """The bindings of a module: what is read, then what is written."""
    access = writable([buffer for buffer, _, _ in reads], [buffer for buffer, _, _ in writes])
    lines = [
        f"@group(0) @binding({index}) var<storage, {'read_write' if written else 'read'}> {name}: array<{kind}>;"
        for index, ((_, name, kind), written) in enumerate(zip((*reads, *writes), access, strict=True))
    ]
    return "\n".join(lines) + "\n"


def module(*parts: str, main: str = "") -> str:
    """A WGSL module: what it has to enable first, then the helper functions that the parts call, then the parts.

    A long ``main`` that calls functions of the parts alone comes last, and is not searched.
    """
    body = "\n".join(parts)
    helpers = dict.fromkeys(helper for name in _called(body) for helper in _with_callees(name))
    enable = "enable f16;\n" if _FLOAT16.search(body) or _FLOAT16.search(main) else ""
    return "\n".join([enable, *(SNIPPETS[name] for name in helpers), body, main])


def length_with_helpers(text: str) -> int:
    """The characters of a text and of the helper functions that it calls, each as often as it is called there."""
    calls = [name for name in _CALL.findall(text) if name in SNIPPETS]
    return len(text) + sum(len(SNIPPETS[helper]) for name in calls for helper in _with_callees(name))


def effort(source: str) -> int:
    """About what a driver has to compile, in characters: an operator's last step is put in wherever it is called."""
    calls = sum(source.count(f"{name}(") for name in LAST_STEPS)
    return len(source) + calls * len(source.partition("@compute")[0])


def _called(text: str) -> list[str]:
    """The names of the helper functions that a text calls."""
    return [name for name in dict.fromkeys(_CALL.findall(text)) if name in SNIPPETS]


@cache
def _with_callees(name: str) -> tuple[str, ...]:
    """The name of a helper function behind those of all that it calls."""
    inner = (callee for called in _called(SNIPPETS[name]) if called != name for callee in _with_callees(called))
    return (*dict.fromkeys(inner), name)
