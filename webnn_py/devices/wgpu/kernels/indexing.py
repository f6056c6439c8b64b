"""The gather and scatter families in WGSL.

Indices are unknown until the kernel runs: it counts negative ones from the end and clamps them, so that none leaves
its axis. What is scattered is sought from the output's side, so that no two invocations write one element: among few
updates directly, else in a table of the last update of each place.
"""

import math
from collections.abc import Sequence

import attrs

from webnn_py.core.graph import Node, Output, Value
from webnn_py.core.operators import indexing
from webnn_py.devices.composites.block_quantized import GATHER_BLOCK_QUANTIZED
from webnn_py.devices.wgpu.codegen.data_movement import MovementKernel
from webnn_py.devices.wgpu.codegen.entry_point import vec4_entry_point, vec4_indices
from webnn_py.devices.wgpu.codegen.module import Bindings, bound_kernel, declare
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH, compute_type
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.layout import dense_strides
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import kernels

MOST_SOUGHT = 8
"""Among so many updates an element is sought directly."""


def position(moving: MovementKernel, indices: Value, at: str, size: int) -> str:
    """Return the place on an axis that the index number ``at`` selects."""
    return f"position_{compute_type(indices.descriptor.data_type)}({moving.number(indices, at)}, {size}u)"


@kernels(indexing.gather)
def gather(node: Node, lowering: Lowering) -> None:
    result, axis = node.results[0], node.options["axis"]
    shape, indices = node.operand("input").shape, node.value("indices")
    place = lowering.place(node.value("input"))
    inner = math.prod(shape[axis + 1 :])
    moving = MovementKernel(lowering, result, [place], inner)
    inner //= moving.width
    count = indices.descriptor.element_count
    source = f"(i / {count * inner}u * {shape[axis]}u + found) * {inner}u + i % {inner}u"
    statements = f"""  let found = {position(moving, indices, f"i / {inner}u % {count}u", shape[axis])};
  return {moving.load(place, source)};"""
    moving.emit("gather", result.descriptor.element_count, lowering.target(result), statements)


@kernels(GATHER_BLOCK_QUANTIZED)
def gather_block_quantized(node: Node, lowering: Lowering) -> None:
    """Read the four bits of each element where they lie."""
    result, size = node.results[0], node.options["block_size"]
    (rows, *outer, half), blocks = node.operand("data").shape, node.operand("scales").shape[-1]
    outer_rows, length = math.prod(outer), 2 * half
    bindings = Bindings("b")

    def number(name: str, at: str) -> str:
        value = node.value(name)
        element, place = lowering.element(value), lowering.place(value)
        return element.load(bindings.name(place.buffer, element.one), place.layout.index(at))

    def half_byte(name: str, at: str) -> str:
        return (
            f"((({bindings.name(lowering.dense(node.value(name)), 'u32')}[{at} >> 3u]) >> (({at} & 7u) << 2u)) & 15u)"
        )

    kind = compute_type(node.operand("indices").data_type)
    point = half_byte("zero_points", "point") if "zero_points" in node.operands else "8u"
    statements = f"""  let which = i / {outer_rows * length}u;
  let row = position_{kind}({number("indices", "which")}, {rows}u) * {outer_rows}u + i / {length}u % {outer_rows}u;
  let element = row * {length}u + i % {length}u;
  let block = row * {blocks}u + i % {length}u / {size}u;
  let point = row * {blocks + blocks % 2}u + i % {length}u / {size}u;
  return (f32({half_byte("data", "element")}) - f32({point})) * {number("scales", "block")};"""
    count, stored = result.descriptor.element_count, lowering.element(result)
    values = [f"row_element({index})" for index in vec4_indices(count)]
    main, workgroups = vec4_entry_point(count, [f"o[four] = {stored.pack(values)};"])
    parts = [f"fn row_element(i: u32) -> f32 {{\n{statements}\n}}", main]
    writes = [(lowering.target(result), "o", stored.vec4)]
    label = f"gatherBlockQuantized {result.descriptor.data_type}"
    lowering.emit(bound_kernel(label, bindings, writes, parts, workgroups))


@kernels(indexing.gather_elements)
def gather_elements(node: Node, lowering: Lowering) -> None:
    result = node.results[0]
    place = lowering.place(node.value("input"))
    moving = MovementKernel(lowering, result, [place], 1)
    places = ElementIndices.from_node(node)
    statements = f"  return {moving.load(place, places.row(moving, 'i'))};"
    moving.emit("gatherElements", result.descriptor.element_count, lowering.target(result), statements)


@kernels(indexing.gather_nd)
def gather_nd(node: Node, lowering: Lowering) -> None:
    result = node.results[0]
    place = lowering.place(node.value("input"))
    places = CoordinateIndices.from_node(node)
    moving = MovementKernel(lowering, result, [place], places.inner)
    inner = places.inner // moving.width
    found = places.row(moving, f"(i / {inner}u)")
    statements = f"  return {moving.load(place, f'({found}) * {inner}u + i % {inner}u')};"
    moving.emit("gatherND", result.descriptor.element_count, lowering.target(result), statements)


@attrs.frozen
class ElementIndices:
    """The single elements of the input that indices along an axis select.

    Attributes:
        indices: the indices.
        size: of the input's axis.
        count: of the indices along it.
        below: elements in one step along it.
    """

    indices: Value
    size: int
    count: int
    below: int
    inner: int = 1

    @classmethod
    def from_node(cls, node: Node) -> "ElementIndices":
        axis, shape, indices = node.options["axis"], node.operand("input").shape, node.value("indices")
        return cls(indices, shape[axis], indices.descriptor.shape[axis], math.prod(shape[axis + 1 :]))

    @property
    def updates(self) -> int:
        """Return the number of selected elements."""
        return self.indices.descriptor.element_count

    def row(self, moving: MovementKernel, number: str) -> str:
        """Return the number of the element that the index of a number selects."""
        outer = f"{number} / {self.count * self.below}u * {self.size}u"
        found = position(moving, self.indices, number, self.size)
        return f"({outer} + {found}) * {self.below}u + {number} % {self.below}u"

    def candidates(self) -> list[str]:
        """Return the numbers of the indices that may select the element ``row``."""
        outer = f"row / {self.size * self.below}u * {self.count * self.below}u"
        return [f"({outer} + {index * self.below}u + row % {self.below}u)" for index in range(self.count)]

    @property
    def sought(self) -> int:
        """Return the most indices that may select one element."""
        return self.count


@attrs.frozen
class CoordinateIndices:
    """The slices of the input that coordinates select.

    Attributes:
        indices: the coordinates.
        sizes: of the input's axes that they count along.
        inner: elements of a slice.
    """

    indices: Value
    sizes: Sequence[int]
    inner: int

    @classmethod
    def from_node(cls, node: Node) -> "CoordinateIndices":
        shape, indices = node.operand("input").shape, node.value("indices")
        length = indices.descriptor.shape[-1]
        return cls(indices, shape[:length], math.prod(shape[length:]))

    @property
    def updates(self) -> int:
        """Return the number of selected elements."""
        return self.indices.descriptor.element_count // len(self.sizes)

    def row(self, moving: MovementKernel, number: str) -> str:
        """Return the number of the slice that the coordinates of a number select."""
        length = len(self.sizes)
        found = [
            f"{position(moving, self.indices, f'{number} * {length}u + {axis}u', size)} * {stride}u"
            for axis, (size, stride) in enumerate(zip(self.sizes, dense_strides(self.sizes), strict=True))
        ]
        return " + ".join(found)

    def candidates(self) -> list[str]:
        """Return the numbers of the coordinates that may select the slice ``row``."""
        return [f"{number}u" for number in range(self.updates)]

    @property
    def sought(self) -> int:
        """Return the most coordinates that may select one slice."""
        return self.updates


@kernels(indexing.scatter_elements)
def scatter_elements(node: Node, lowering: Lowering) -> None:
    scatter(lowering, node, ElementIndices.from_node(node))


@kernels(indexing.scatter_nd)
def scatter_nd(node: Node, lowering: Lowering) -> None:
    scatter(lowering, node, CoordinateIndices.from_node(node))


def scatter(lowering: Lowering, node: Node, places: ElementIndices | CoordinateIndices) -> None:
    """Write the input, but where updates go, the last of them."""
    result = node.results[0]
    base, updates = (lowering.place(node.value(name)) for name in ("input", "updates"))
    last = None if places.sought <= MOST_SOUGHT else last_updates(lowering, result, places)
    moving = MovementKernel(lowering, result, [base, updates], places.inner)
    inner = places.inner // moving.width
    lines = [f"  let row = i / {inner}u;"]

    def taken(number: str) -> str:
        return f"return {moving.load(updates, f'{number} * {inner}u + i % {inner}u')};"

    if last is None:
        lines += [
            f"  if ({places.row(moving, number)} == row) {{ {taken(number)} }}"
            for number in reversed(places.candidates())
        ]
    else:
        lines += [f"  let number = {moving.word(last, 'row')};", f"  if (number != 0u) {{ {taken('(number - 1u)')} }}"]
    lines.append(f"  return {moving.load(base, 'i')};")
    operator = str(node.operator.spec_name)
    moving.emit(operator, result.descriptor.element_count, lowering.target(result), "\n".join(lines))


def last_updates(lowering: Lowering, result: Output, places: ElementIndices | CoordinateIndices) -> Buffer:
    """A table of words: for each slice of the output, the number of its last update, counted from 1; 0 for none."""
    rows = result.descriptor.element_count // places.inner
    table = Buffer("block", 4 * rows)
    main, workgroups = vec4_entry_point(rows, ["o[four] = vec4<u32>();"])
    declared = declare([], [(table, "o", "vec4<u32>")])
    lowering.emit(Kernel("scatter clear", declared + main, (), (table,), workgroups))
    moving = MovementKernel(lowering, result, [], 1)
    lines = [
        f"if (i + {k}u < {places.updates}u) {{ atomicMax(&o[row_of(i + {k}u)], i + {k + 1}u); }}" for k in range(WIDTH)
    ]
    moving.define(f"fn row_of(i: u32) -> u32 {{ return {places.row(moving, 'i')}; }}")
    main, workgroups = vec4_entry_point(places.updates, lines)
    moving.finish("scatter find", main, workgroups, {"o": table}, "atomic<u32>")
    return table
