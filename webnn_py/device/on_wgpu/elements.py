"""Kernels that compute each element by itself, and what they have in common with others that do.

Each invocation computes four neighbouring elements of the output and stores them at once.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from webnn_py.device.on_wgpu.chains import Chain
from webnn_py.device.on_wgpu.fusing import constant_scalar
from webnn_py.device.on_wgpu.layout import Layout
from webnn_py.device.on_wgpu.lowering import WORKGROUP, Buffer, Kernel, Lowering, declare, grid
from webnn_py.device.on_wgpu.snippets import SNIPPETS
from webnn_py.device.on_wgpu.wgsl import WIDTH, Element
from webnn_py.graph import Node, Value

_CALL: Final = re.compile(r"\b(\w++)\(")
_FLOAT16: Final = re.compile(r"f16(?<=\bf16)\b")  # it begins with letters, which makes it fast


def module(*parts: str, main: str = "") -> str:
    """A WGSL module: what it has to enable first, then the helper functions that the parts call, then the parts.

    A long ``main`` that calls functions of the parts alone comes last, and is not searched.
    """
    body = "\n".join(parts)
    helpers = dict.fromkeys(helper for name in _called(body) for helper in _with_callees(name))
    enable = "enable f16;\n" if _FLOAT16.search(body) or _FLOAT16.search(main) else ""
    return "\n".join([enable, *(SNIPPETS[name] for name in helpers), body, main])


def _called(text: str) -> list[str]:
    """The names of the helper functions that a text calls."""
    return [name for name in dict.fromkeys(_CALL.findall(text)) if name in SNIPPETS]


@cache
def _with_callees(name: str) -> tuple[str, ...]:
    """The name of a helper function behind those of all that it calls."""
    inner = (callee for called in _called(SNIPPETS[name]) if called != name for callee in _with_callees(called))
    return (*dict.fromkeys(inner), name)


def _main(count: int, body: str) -> tuple[str, tuple[int, int, int]]:
    """The entry point that runs ``body`` for every four of ``count`` elements: ``four`` and ``i``."""
    fours = -(-count // WIDTH)
    workgroups = grid(-(-fours // WORKGROUP))
    text = f"""
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let four = id.x + id.y * {workgroups[0] * WORKGROUP}u;
  if (four >= {fours}u) {{ return; }}
  let i = four * {WIDTH}u;
{body}
}}
"""
    return text, workgroups


def _lanes(count: int) -> list[str]:
    """The numbers of the four elements; beyond the last one, the last one, so that no index leaves its tensor."""
    numbers = ["i", *(f"i + {lane}u" for lane in range(1, WIDTH))]
    return numbers if count % WIDTH == 0 else [f"min({number}, {count - 1}u)" for number in numbers]


class _Operands:
    """The buffers that a kernel reads, each bound once for each way of reading it."""

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        self.bindings: dict[tuple[Buffer, str], str] = {}
        self._loads = 0

    def bind(self, buffer: Buffer, kind: str) -> str:
        return self.bindings.setdefault((buffer, kind), f"b{len(self.bindings)}")

    def scalars(
        self, value: Value, shape: tuple[int, ...], lanes: list[str], layout: Layout | None = None
    ) -> tuple[str, list[str]]:
        """Statements that prepare, and expressions for four elements of a value that is broadcast to ``shape``.

        Args:
            value: what to read.
            shape: the shape to broadcast to.
            lanes: the numbers of the elements: of the four, or of any others when they are not four.
            layout: how to look at the value, when not as it lies.
        """
        element = self._lowering.element(value)
        literal = constant_scalar(value)
        if literal is not None:
            return "", [element.literal(literal)] * len(lanes)
        self._loads += 1
        place = self._lowering.near(value) if layout is None else self._lowering.place(value)
        layout = (layout or place.layout).broadcast(shape)
        if len(lanes) != WIDTH:
            name = self.bind(place.buffer, element.one)
            return "", [element.load(name, layout.index(f"({lane})")) for lane in lanes]
        return self._four(place.buffer, element, layout, lanes)

    def _four(self, buffer: Buffer, element: Element, layout: Layout, lanes: list[str]) -> tuple[str, list[str]]:
        """The same for the four elements number ``four``, in the way that their layout allows."""
        if layout.is_dense:
            name = self.bind(buffer, element.four)
            return f"  let {name}_four = {name}[four];\n", element.unpack(f"{name}_four")
        fours, repeats = layout.fours(), layout.repeats()
        variable = f"four_{self._loads}"
        if fours is not None:
            name = self.bind(buffer, element.four)
            return f"  let {variable} = {name}[{fours.index('four')}];\n", element.unpack(variable)
        name = self.bind(buffer, element.one)
        if repeats is not None and not layout.is_single:
            load = element.load(name, repeats.index("four"))
            return f"  let {variable} = {load};\n", [variable] * WIDTH
        if layout.is_single:
            variable = f"{name}_at_{layout.offset}"
            load = element.load(name, f"{layout.offset}u")
            return f"  let {variable} = {load};\n", [variable] * WIDTH
        at = layout.spaced("four") or [layout.index(f"({lane})") for lane in lanes]
        return "", [element.load(name, index) for index in at]


def emit_expression(lowering: Lowering, node: Node) -> None:
    """One kernel for an element-wise node and the element-wise nodes fused into it."""
    chain = Chain.of(lowering, node)
    descriptor = chain.result.descriptor
    output = lowering.element(chain.result)
    lanes = _lanes(descriptor.element_count)
    operands = _Operands(lowering)
    loads = [operands.scalars(leaf, descriptor.shape, lanes) for leaf in chain.leaves]
    calls = [f"compute({', '.join(scalars[lane] for _, scalars in loads)})" for lane in range(WIDTH)]
    target = lowering.target(chain.result)
    prepare = "".join(dict.fromkeys(text for text, _ in loads))
    main, workgroups = _main(descriptor.element_count, f"{prepare}  o[four] = {output.pack(calls)};")
    source = module(
        declare(
            [(buffer, name, kind) for (buffer, kind), name in operands.bindings.items()], [(target, "o", output.four)]
        ),
        chain.function("compute"),
        main,
    )
    reads = tuple(buffer for buffer, _ in operands.bindings)
    lowering.emit(Kernel(chain.label, source, reads, (target,), workgroups))
