"""The operands of an attention kernel: queries, keys and values in vec4s along rows, and score terms."""

from __future__ import annotations

import attrs

from webnn_py.core.graph import Value
from webnn_py.devices.wgpu.codegen.attention.tile import AttentionShape
from webnn_py.devices.wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.devices.wgpu.records.attention import Attention, AttentionOperand
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH, Element
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar
from webnn_py.devices.wgpu.records.layout import Layout, in_vec4s
from webnn_py.devices.wgpu.records.lowering import Lowering


@attrs.frozen
class AttentionMatrix:
    """Queries, keys or values, with rows of whole vec4s.

    Attributes:
        buffer: the buffer.
        element: the storage of the data type.
        batches: the starts of the matrices, in elements, with all offsets.
        rows: the starts of the rows in a matrix, in elements.
    """

    buffer: Buffer
    element: Element
    batches: Layout
    rows: Layout

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

    def loads(self, array: str, variable: str, row: str, key: str = "key") -> tuple[list[str], list[str]]:
        """Return the loads of four keys from ``key`` on, and expressions for their elements."""
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
    """The operands of an attention kernel.

    Attributes:
        shape: the shape of the attention.
        queries: the queries.
        keys: the keys.
        values: the values.
        fused: the element-wise nodes before the softmax; None if there are none.
        is_rounded: whether they give float16.
        terms: their operands besides the scores: tensors or literals.
        dead: the condition by which the graph sets the results of rows to zero; None if it does not.
        is_never_nan: whether the graph replaces NaN by zero.
    """

    shape: AttentionShape
    queries: AttentionMatrix
    keys: AttentionMatrix
    values: AttentionMatrix
    fused: ElementwiseFunction | None
    is_rounded: bool
    terms: tuple[ScoreTerm | str, ...]
    dead: ScoreTerm | None
    is_never_nan: bool

    @classmethod
    def from_attention(cls, lowering: Lowering, attention: Attention) -> AttentionOperands:
        """Look up the operands of an attention."""
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
        return cls(shape_of(attention), queries, keys, values, fused, is_rounded, terms, dead, attention.is_never_nan)


def _term(lowering: Lowering, value: Value, shape: tuple[int, ...]) -> ScoreTerm | str:
    number = constant_scalar(value)
    return ScoreTerm.from_value(lowering, value, shape) if number is None else lowering.element(value).literal(number)


def shape_of(attention: Attention) -> AttentionShape:
    """Return the shape of an attention."""
    rows, size = attention.queries.size
    keys, columns = attention.values.size
    is_float16 = attention.keys.value.descriptor.data_type == "float16"
    return AttentionShape(attention.batch, rows, keys, size, columns, is_float16)
