"""Kernels that compute each element by itself: fused chains of expressions, gathering bodies, and copies.

Each invocation computes four neighbouring elements of the output and stores them at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, Final

from webnn_py.device.on_wgpu.fusing import constant_scalar
from webnn_py.device.on_wgpu.layout import Layout
from webnn_py.device.on_wgpu.lowering import WORKGROUP, Buffer, Kernel, Lowering, declare, grid
from webnn_py.device.on_wgpu.snippets import SNIPPETS
from webnn_py.device.on_wgpu.table import entry_of
from webnn_py.device.on_wgpu.wgsl import WIDTH, Element
from webnn_py.graph import Node, Output, Value

if TYPE_CHECKING:
    from webnn_py.device.on_wgpu.table import Elements

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


def emit_expression(lowering: Lowering, node: Node, fused: Collection[Node]) -> None:
    """One kernel for an element-wise node and the element-wise nodes fused into it."""
    result = node.results[0]
    output = lowering.element(result)
    count = result.descriptor.element_count
    lanes = _lanes(count)
    operands = _Operands(lowering)
    leaves: dict[Value, str] = {}
    statements: list[str] = []
    value = _inline(lowering, node, fused, leaves, statements)
    parameters = ", ".join(f"{name}: {lowering.element(leaf).compute}" for leaf, name in leaves.items())
    compute = "\n".join(
        [
            f"fn compute({parameters}) -> {output.compute} {{",
            *(f"  {line}" for line in statements),
            f"  return {value};",
            "}",
        ]
    )
    loads = [operands.scalars(leaf, result.descriptor.shape, lanes) for leaf in leaves]
    calls = [f"compute({', '.join(scalars[lane] for _, scalars in loads)})" for lane in range(WIDTH)]
    target = lowering.target(result)
    prepare = "".join(dict.fromkeys(text for text, _ in loads))
    main, workgroups = _main(count, f"{prepare}  o[four] = {output.pack(calls)};")
    source = module(
        declare([(name, kind) for (_, kind), name in operands.bindings.items()], [("o", output.four)]),
        compute,
        main,
    )
    reads = tuple(buffer for buffer, _ in operands.bindings)
    lowering.emit(Kernel(_label(node, fused), source, reads, (target,), workgroups))


def _inline(
    lowering: Lowering, node: Node, fused: Collection[Node], leaves: dict[Value, str], statements: list[str]
) -> str:
    """Write the statements that compute ``node`` and return the name of the result."""
    computed: dict[Node, str] = {}
    for item in _chain(node, fused):
        names = []
        for value in item.inputs:
            if isinstance(value, Output) and value.node in computed:
                names.append(computed[value.node])
            else:
                names.append(leaves.setdefault(value, f"a{len(leaves)}"))
        expression = entry_of(item).expression
        assert expression is not None  # noqa: S101 - only element-wise nodes are fused
        computed[item] = f"v{len(statements)}"
        element = lowering.element(item.results[0])
        statements.append(f"let {computed[item]} = {element.narrow(expression(item, *names), is_stored=item is node)};")
    return computed[node]


def _chain(node: Node, fused: Collection[Node]) -> list[Node]:
    """All that a node's kernel computes, each node behind those that it reads, once."""
    chain: dict[Node, None] = {}
    stack = [(node, False)]
    while stack:
        item, has_operands = stack.pop()
        if has_operands:
            chain[item] = None
        elif item not in chain:
            stack.append((item, True))
            inner = [value.node for value in item.inputs if isinstance(value, Output) and value.node in fused]
            stack += [(operand, False) for operand in reversed(inner)]
    return list(chain)


def _label(node: Node, fused: Collection[Node]) -> str:
    """The operators, with the data type of those that read nothing of the others."""
    words = []
    for item in _chain(node, fused):
        is_first = not any(isinstance(value, Output) and value.node in fused for value in item.inputs)
        words.append(f"{item.operator.spec_name} {item.outputs[0].data_type}" if is_first else item.operator.spec_name)
    return " ".join(map(str, words))


class Body:
    """What the body of an ``elements`` kernel may use: its operands' elements, by their row-major numbers."""

    def __init__(self, lowering: Lowering, node: Node) -> None:
        self._lowering = lowering
        self._operands = _Operands(lowering)
        self._accessors: dict[Value, str] = {}
        self.functions: list[str] = []
        self.features = lowering.features
        self.output = lowering.element(node.results[0])

    def load(self, value: Value, index: str) -> str:
        """An expression for the element of ``value`` whose row-major number is ``index`` (u32)."""
        return f"{self._accessor(value)}({index})"

    def compute_type(self, value: Value) -> str:
        """The WGSL type of a value's elements in a kernel."""
        return self._lowering.element(value).compute

    def _accessor(self, value: Value) -> str:
        if value not in self._accessors:
            name = self._accessors[value] = f"load{len(self._accessors)}"
            element = self._lowering.element(value)
            literal = constant_scalar(value)
            if literal is not None:
                self.functions.append(
                    f"fn {name}(i: u32) -> {element.compute} {{ return {element.literal(literal)}; }}"
                )
                return name
            place = self._lowering.place(value)
            index = "i" if place.layout.is_dense else place.layout.index("i")
            load = element.load(self._operands.bind(place.buffer, element.one), index)
            self.functions.append(f"fn {name}(i: u32) -> {element.compute} {{ return {load}; }}")
        return self._accessors[value]

    def finish(self, node: Node, statements: str, result: Value) -> None:
        """Emit the kernel."""
        count = result.descriptor.element_count
        compute = f"fn compute(i: u32) -> {self.output.compute} {{\n{statements}\n}}"
        calls = [f"compute({lane})" for lane in _lanes(count)]
        target = self._lowering.target(result)
        main, workgroups = _main(count, f"  o[four] = {self.output.pack(calls)};")
        source = module(
            declare([(name, kind) for (_, kind), name in self._operands.bindings.items()], [("o", self.output.four)]),
            *self.functions,
            compute,
            main,
        )
        label = f"{node.operator.spec_name} {result.descriptor.data_type}"
        reads = tuple(buffer for buffer, _ in self._operands.bindings)
        self._lowering.emit(Kernel(label, source, reads, (target,), workgroups))


def emit_elements(lowering: Lowering, node: Node, write: Elements) -> None:
    """One kernel that computes each element of a node's only output by a body."""
    body = Body(lowering, node)
    body.finish(node, write(node, body), node.results[0])
