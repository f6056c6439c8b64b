"""The operands of an attention kernel: queries, keys and values in vec4s along rows, and the terms of scores."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from webnn_py.core.graph import Value
from webnn_py.devices.wgpu.codegen.attention.tile import AttentionShape, AttentionTile
from webnn_py.devices.wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.devices.wgpu.codegen.module import Binding, Bindings
from webnn_py.devices.wgpu.records.attention import Attention, AttentionOperand
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH, Element, literal
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar
from webnn_py.devices.wgpu.records.layout import Layout, in_vec4s
from webnn_py.devices.wgpu.records.lowering import Lowering

INVERSE = """fn inverse_of(highest: f32, total: f32) -> f32 {
  let is_nan = (bitcast<u32>(highest) & 0x7fffffffu) >= 0x7f800000u || total < 0.0;
  return bitcast<f32>(select(bitcast<u32>(1.0 / total), 0x7fc00000u, is_nan));
}"""
"""The inverse of the total of a row's powers: NaN if a score is NaN, the highest is infinite, or all are -∞."""


@attrs.frozen
class AttentionMatrix:
    """Queries, keys or values, with rows of whole vec4s.

    Attributes:
        buffer: the buffer.
        element: the storage of the data type.
        batches: the starts of the matrices, in elements, with all offsets.
        rows: the starts of the rows in a matrix, in elements.
        array: the name by which the kernel binds the buffer anyway; "" if it does not.
    """

    buffer: Buffer
    element: Element
    batches: Layout
    rows: Layout
    array: str = ""

    @classmethod
    def dense(cls, buffer: Buffer, element: Element, shape: tuple[int, int, int], array: str = "") -> AttentionMatrix:
        """Return a dense buffer of so many matrices, rows, and elements of a row."""
        batches, rows, _ = Layout.dense(shape).strides
        return cls(buffer, element, Layout(shape[:1], (batches,)), Layout(shape[1:2], (rows,)), array)

    @classmethod
    def from_operand(cls, lowering: Lowering, operand: AttentionOperand) -> AttentionMatrix:
        """Return an operand, which is copied first if its rows cannot be loaded as vec4s."""
        value = operand.value
        place = lowering.place(value)
        layout = _transposed(place.layout) if operand.is_transposed else place.layout
        buffer = place.buffer
        if not _has_whole_vec4s(layout):
            buffer, layout = lowering.repacked(value, layout), Layout.dense(layout.shape)
        layout = layout.broadcast((*operand.batch, *layout.shape[-2:]))
        batches = Layout(layout.shape[:-2], layout.strides[:-2], layout.offset)
        return cls(buffer, lowering.element(value), batches, Layout(layout.shape[-2:-1], layout.strides[-2:-1]))

    def functions(self, name: str, bindings: Bindings) -> list[str]:
        """Return the function that loads a vec4, and the one that makes floats of it."""
        kind, values = self.element.vec4, ", ".join(self.element.unpack("x"))
        array = self.array or bindings.name(self.buffer, kind)
        return [
            f"fn {name}_at(i: u32) -> {kind} {{ return {array}[i]; }}",
            f"fn {name}_wide(x: {kind}) -> vec4<f32> {{ return vec4<f32>({values}); }}",
        ]

    def begin(self, name: str) -> str:
        """Return the statement that names the start of the batch's matrix, in vec4s."""
        return f"let {name}_base = {in_vec4s(self.batches).index('batch')};"

    def row(self, number: str) -> str:
        """Return the start of a row in its matrix, in vec4s."""
        return in_vec4s(self.rows).index(f"({number})")


def _transposed(layout: Layout) -> Layout:
    rank = len(layout.shape)
    return layout.permute((*range(rank - 2), rank - 1, rank - 2))


def _has_whole_vec4s(layout: Layout) -> bool:
    strides = [stride for size, stride in zip(layout.shape[:-1], layout.strides[:-1], strict=True) if size > 1]
    is_along = layout.strides[-1] == 1
    return is_along and not any(number % WIDTH or number < 0 for number in (*strides, layout.offset))


@attrs.frozen
class ScoreTerm:
    """A tensor, broadcast to the scores, that fused element-wise nodes read, such as a mask.

    Attributes:
        buffer: the buffer.
        element: the storage of the data type.
        batches: the starts of the batches.
        rows: the starts of the rows in a batch.
        step: the stride from one key to the next.
        keys: the number of keys.
    """

    buffer: Buffer
    element: Element
    batches: Layout
    rows: Layout
    step: int
    keys: int

    @classmethod
    def from_value(cls, lowering: Lowering, value: Value, shape: tuple[int, ...]) -> ScoreTerm:
        """Return the term of a value that is broadcast to the shape of the scores."""
        place = lowering.near(value)
        layout = place.layout.broadcast(shape)
        batches = Layout(layout.shape[:-2], layout.strides[:-2], layout.offset)
        rows = Layout(layout.shape[-2:-1], layout.strides[-2:-1])
        step = layout.strides[-1] if shape[-1] > 1 else 0
        return cls(place.buffer, lowering.element(value), batches, rows, step, shape[-1])

    @property
    def has_vec4s(self) -> bool:
        """True if four keys are an aligned vec4."""
        numbers = [self.batches.offset]
        for layout in (self.batches, self.rows):
            numbers += [stride for size, stride in zip(layout.shape, layout.strides, strict=True) if size > 1]
        return self.step == 1 and self.keys % WIDTH == 0 and not any(number % WIDTH for number in numbers)

    @property
    def kind(self) -> str:
        """The element type of the binding."""
        return self.element.vec4 if self.has_vec4s else self.element.one

    def loads(self, bindings: Bindings, variable: str, row: str, key: str) -> tuple[list[str], list[str]]:
        """Return the loads of four keys from ``key`` on, and expressions for their elements."""
        array = bindings.name(self.buffer, self.kind)
        base = f"{self.batches.index('batch')} + {self.rows.index(f'({row})')}"
        if self.has_vec4s:
            line = f"let {variable} = {array}[({base} + min({key}, {self.keys - WIDTH}u)) / {WIDTH}u];"
            return [line], self.element.unpack(variable)
        if self.step == 0:
            return [f"let {variable} = {self.element.load(array, base)};"], [variable] * WIDTH
        lines = []
        for component in range(WIDTH):
            place = f"{base} + min({key} + {component}u, {self.keys - 1}u) * {self.step % 2**32}u"
            lines.append(f"let {variable}_{component} = {self.element.load(array, place)};")
        return lines, [f"{variable}_{component}" for component in range(WIDTH)]


@attrs.frozen
class AttentionOperands:
    """What a kernel of attention computes of: its matrices, the range of keys, and the terms of scores.

    In the kernel ``batch`` is the number of a matrix of scores, ``block`` that of the workgroup's rows among its rows,
    and ``part`` that of the workgroup's part of the keys. Here all keys are there, and scores are the products.

    Attributes:
        tile: the tile of a workgroup.
        queries: the queries; None if :meth:`begin` leaves them in workgroup memory, in ``brought``.
        keys: the keys.
        values: the values.
        is_rounded: whether scores are rounded to float16 if they are large.
        reads: what functions read that they do not bind themselves.
        writes: what the kernel writes besides results.
    """

    tile: AttentionTile
    queries: AttentionMatrix | None
    keys: AttentionMatrix
    values: AttentionMatrix
    is_rounded: bool
    reads: Sequence[Binding]
    writes: Sequence[Binding]

    # --- the range of keys -----------------------------------------------------------------------------------

    @property
    def bound(self) -> str:
        """The number of keys to which tiles are bounded; "" if they divide the keys."""
        keys = self.tile.shape.keys
        return "" if keys % self.tile.keys == 0 else f"{keys}u"

    def range_functions(self) -> list[str]:
        """Return the functions that :meth:`begin` and :meth:`count` call."""
        return []

    def begin(self) -> list[str]:
        """Return the statements that name ``start`` and ``end``, a part's first key and the one behind its last."""
        length = -(-self.tile.steps // self.tile.splits) * self.tile.keys
        return [f"let start = part * {length}u;", f"let end = min(start + {length}u, {self.tile.shape.keys}u);"]

    def count(self) -> tuple[list[str], str]:
        """Return statements that find how many parts the keys of ``row`` have, and that number."""
        return [], f"{self.tile.splits}u"

    # --- scores ----------------------------------------------------------------------------------------------

    def score_functions(self, bindings: Bindings) -> list[str]:
        """Return the functions that :meth:`score` calls, and :meth:`begin` besides."""
        return []

    def terms(self, bindings: Bindings, variable: str, row: str, key: str) -> tuple[list[str], list[list[str]]]:
        """Return the loads of the other terms of a row's scores, and their values for each of four keys."""
        return [], [[]] * WIDTH

    def score(self, product: str, row: str, key: str, terms: list[str]) -> str:
        """Return a score, of the product of a query and a key."""
        return product

    # --- the end ---------------------------------------------------------------------------------------------

    def end_functions(self, bindings: Bindings) -> list[str]:
        """Return the functions that :meth:`factor` calls."""
        return [INVERSE]

    def factor(self, bindings: Bindings, row: str, highest: str, total: str) -> list[str]:
        """Return the statements that name ``factor``, by which the sums of a row are multiplied at the end."""
        return [f"let factor = inverse_of({highest}, {total});"]


@attrs.frozen
class FusedOperands(AttentionOperands):
    """The operands of an attention that is found in a graph.

    Attributes:
        fused: the element-wise nodes before the softmax; None if there are none.
        fused_terms: their operands besides the scores: tensors or literals.
        dead: the condition by which the graph sets the results of rows to zero; None if it does not.
        is_never_nan: whether the graph replaces NaN by zero.
    """

    fused: ElementwiseFunction | None
    fused_terms: tuple[ScoreTerm | str, ...]
    dead: ScoreTerm | None
    is_never_nan: bool

    @classmethod
    def from_attention(cls, lowering: Lowering, attention: Attention, tile: AttentionTile) -> FusedOperands:
        """Look up the operands of an attention that is computed with a tile."""
        queries, keys, values = (
            AttentionMatrix.from_operand(lowering, side)
            for side in (attention.queries, attention.keys, attention.values)
        )
        fused: ElementwiseFunction | None = None
        terms: tuple[ScoreTerm | str, ...] = ()
        if attention.last is not None:
            fused = ElementwiseFunction.ending_at(lowering, attention.last, attention.scores, rounds=False)
            terms = tuple(_term(lowering, leaf, attention.shape) for leaf in fused.leaves[1:])
        dead = None
        if attention.dead is not None:
            condition = next(iter(attention.dead.inputs))
            dead = ScoreTerm.from_value(lowering, condition, attention.dead.outputs[0].shape)
        is_rounded = fused is not None and attention.softmax.outputs[0].data_type == "float16"
        is_never_nan = attention.is_never_nan
        return cls(tile, queries, keys, values, is_rounded, (), (), fused, terms, dead, is_never_nan)

    @property
    def bound_terms(self) -> int:
        """The number of buffers that are bound besides queries, keys and values."""
        return sum(not isinstance(term, str) for term in self.fused_terms) + (self.dead is not None)

    def score_functions(self, bindings: Bindings) -> list[str]:
        """Return the function of the element-wise nodes."""
        return [] if self.fused is None else [self.fused.function("masked")]

    def terms(self, bindings: Bindings, variable: str, row: str, key: str) -> tuple[list[str], list[list[str]]]:
        """Return the loads of four keys' elements of the element-wise nodes' operands, and these elements."""
        lines: list[str] = []
        terms: list[list[str]] = []
        for number, term in enumerate(self.fused_terms):
            if isinstance(term, str):
                terms.append([term] * WIDTH)
                continue
            loads, values = term.loads(bindings, f"{variable}_{number}", row, key)
            lines += loads
            terms.append(values)
        return lines, [[values[key] for values in terms] for key in range(WIDTH)]

    def score(self, product: str, row: str, key: str, terms: list[str]) -> str:
        """Return the value of the element-wise nodes."""
        return product if self.fused is None else f"masked({', '.join([product, *terms])})"

    def factor(self, bindings: Bindings, row: str, highest: str, total: str) -> list[str]:
        """Return the inverse of the total, or zero in rows that the graph sets to zero."""
        inverse = f"let inverse = inverse_of({highest}, {total});"
        if self.is_never_nan:
            return [inverse, "let factor = select(inverse, 0.0, (bitcast<u32>(inverse) & 0x7fffffffu) > 0x7f800000u);"]
        if self.dead is None:
            return [inverse, "let factor = inverse;"]
        loads, values = self.dead.loads(bindings, "is_dead", row, "0u")
        is_dead = f"{values[0]} != {literal(0, self.dead.element.compute)}"
        return [inverse, *loads, f"let factor = select(inverse, 0.0, {is_dead});"]


def _term(lowering: Lowering, value: Value, shape: tuple[int, ...]) -> ScoreTerm | str:
    number = constant_scalar(value)
    return ScoreTerm.from_value(lowering, value, shape) if number is None else lowering.element(value).literal(number)


def shape_of(attention: Attention) -> AttentionShape:
    """Return the shape of an attention."""
    rows, size = attention.queries.size
    keys, columns = attention.values.size
    is_float16 = attention.keys.value.descriptor.data_type == "float16"
    return AttentionShape(attention.batch, rows, keys, size, columns, is_float16)
