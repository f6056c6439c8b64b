"""What attention's kernel reads: queries, keys and values in vec4s along rows, and what is read beside scores."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

import attrs

from webnn_py.device.on_wgpu.codegen.attention.tile import MOST_VECTORS, AttentionShape
from webnn_py.device.on_wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.device.on_wgpu.records.attention import Attention, AttentionOperand
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.graph import Output, Value


@attrs.frozen
class AttentionSide:
    """Queries, keys or values, with rows of whole vec4s.

    Attributes:
        buffer: where they lie.
        element: how their data type is stored.
        batches: where the matrices begin, in elements; all offsets are here.
        rows: where the rows begin in a matrix, in elements.
    """

    buffer: Buffer
    element: Element
    batches: Layout
    rows: Layout

    @classmethod
    def of(cls, lowering: Lowering, operand: AttentionOperand) -> AttentionSide:
        """A side as it lies; copied first where vec4s cannot be read along its rows."""
        value = operand.value
        place = lowering.place(value)
        layout = _turned(place.layout) if operand.is_transposed else place.layout
        buffer = place.buffer
        if not _has_whole_vec4s(layout):
            buffer, layout = lowering.repacked(value, layout), Layout.dense(layout.shape)
        layout = layout.broadcast((*operand.batch, *layout.shape[-2:]))
        batches = Layout(layout.shape[:-2], layout.strides[:-2], layout.offset)
        return cls(buffer, lowering.element(value), batches, Layout(layout.shape[-2:-1], layout.strides[-2:-1]))

    def begin(self, name: str) -> str:
        """A statement that names where the batch's matrix begins, in vec4s."""
        return f"let {name}_base = {_in_vec4s(self.batches).index('batch')};"

    def row(self, number: str) -> str:
        """Where a row begins in its matrix, in vec4s."""
        return _in_vec4s(self.rows).index(f"({number})")


def _turned(layout: Layout) -> Layout:
    rank = len(layout.shape)
    return layout.permute((*range(rank - 2), rank - 1, rank - 2))


def _has_whole_vec4s(layout: Layout) -> bool:
    strides = [stride for size, stride in zip(layout.shape[:-1], layout.strides[:-1], strict=True) if size > 1]
    is_along = layout.strides[-1] == 1
    return is_along and not any(number % WIDTH or number < 0 for number in (*strides, layout.offset))


def _in_vec4s(layout: Layout) -> Layout:
    return Layout(layout.shape, tuple(stride // WIDTH for stride in layout.strides), layout.offset // WIDTH)


@attrs.frozen
class ScoreTerm:
    """What element-wise nodes read beside the scores.

    Attributes:
        buffer: where it lies.
        element: how its data type is stored.
        batches: where a batch's begins.
        rows: where a row's begins in a batch.
        step: from one key to the next.
        keys: how many keys there are.
    """

    buffer: Buffer
    element: Element
    batches: Layout
    rows: Layout
    step: int
    keys: int

    @classmethod
    def of(cls, lowering: Lowering, value: Value, shape: tuple[int, ...]) -> ScoreTerm:
        """A value that is broadcast to the shape of the scores."""
        place = lowering.near(value)
        layout = place.layout.broadcast(shape)
        batches = Layout(layout.shape[:-2], layout.strides[:-2], layout.offset)
        rows = Layout(layout.shape[-2:-1], layout.strides[-2:-1])
        step = layout.strides[-1] if shape[-1] > 1 else 0
        return cls(place.buffer, lowering.element(value), batches, rows, step, shape[-1])

    @property
    def has_vec4s(self) -> bool:
        """Whether those of four keys lie as a whole vec4."""
        numbers = [self.batches.offset]
        for layout in (self.batches, self.rows):
            numbers += [stride for size, stride in zip(layout.shape, layout.strides, strict=True) if size > 1]
        return self.step == 1 and self.keys % WIDTH == 0 and not any(number % WIDTH for number in numbers)

    @property
    def kind(self) -> str:
        """The type of the array's elements."""
        return self.element.vec4 if self.has_vec4s else self.element.one

    @property
    def is_same_for_rows(self) -> bool:
        """Whether all rows of a batch read the same."""
        return self.rows.is_single

    def loads(self, array: str, variable: str, row: str, key: str = "key") -> tuple[list[str], list[str]]:
        """Statements, and expressions for those of four keys from ``key`` on."""
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


T = TypeVar("T", AttentionSide, ScoreTerm)


@attrs.frozen
class AttentionOperands:
    """All that attention's kernel reads.

    Attributes:
        shape: what is computed.
        queries: the queries.
        keys: the keys.
        values: the values.
        fused: the element-wise nodes in front of the softmax; None if there are none.
        terms: what they read beside the scores: where it lies, or a number.
        dead: what says in which rows there are zeros.
        is_never_nan: whether there are zeros in place of NaN.
    """

    shape: AttentionShape
    queries: AttentionSide
    keys: AttentionSide
    values: AttentionSide
    fused: ElementwiseFunction | None
    terms: tuple[ScoreTerm | str, ...]
    dead: ScoreTerm | None
    is_never_nan: bool

    @classmethod
    def of(cls, lowering: Lowering, attention: Attention) -> AttentionOperands:
        """Look up where all that lies."""
        queries, keys, values = (
            AttentionSide.of(lowering, side) for side in (attention.queries, attention.keys, attention.values)
        )
        fused: ElementwiseFunction | None = None
        terms: tuple[ScoreTerm | str, ...] = ()
        if attention.last is not None:
            fused = ElementwiseFunction.of(Unrounded(lowering), attention.last, attention.scores)
            terms = tuple(_term(lowering, leaf, attention.shape) for leaf in fused.leaves[1:])
        dead = None
        if attention.dead is not None:
            condition = next(iter(attention.dead.inputs))
            dead = ScoreTerm.of(lowering, condition, attention.dead.outputs[0].shape)
        own = shape_of(attention), queries, keys, values, fused, terms, dead, attention.is_never_nan
        return cls(*own)

    def grouped(self) -> AttentionOperands:
        """The same, where few queries of several heads have the same keys and values: with the heads as rows."""
        batch = tuple(size for size in self.keys.batches.shape if size > 1)
        if not batch or batch[-1] * self.shape.rows > MOST_VECTORS:
            return self
        queries = _with_group_as_rows(self.queries, batch)
        terms = [item if isinstance(item, str) else _with_group_as_rows(item, batch) for item in self.terms]
        dead = None if self.dead is None else _with_group_as_rows(self.dead, batch)
        keys, values = (_without_group(item, batch) for item in (self.keys, self.values))
        whole = tuple(item for item in terms if item is not None)
        if (
            keys is None
            or values is None
            or queries is None
            or len(whole) < len(terms)
            or (dead is None) != (self.dead is None)
            or not Variant.ATTENTION_GROUPS.is_on
        ):
            return self
        fewer = attrs.evolve(self.shape, batch=self.shape.batch // batch[-1], rows=self.shape.rows * batch[-1])
        return AttentionOperands(fewer, queries, keys, values, self.fused, whole, dead, self.is_never_nan)


def _with_group_as_rows(item: T, batch: tuple[int, ...]) -> T | None:
    """The last batches of a side or term as its rows, too; None where they lie too oddly."""
    batches = item.batches.reshape(batch)
    if batches is None:
        return None
    rows = Layout((batch[-1], *item.rows.shape), (batches.strides[-1], *item.rows.strides))
    return attrs.evolve(item, batches=Layout(batch[:-1], batches.strides[:-1], batches.offset), rows=rows)


def _without_group(side: AttentionSide, batch: tuple[int, ...]) -> AttentionSide | None:
    """Keys or values that are the same for the last batches; None where they are not."""
    batches = side.batches.reshape(batch)
    if batches is None or batches.strides[-1]:
        return None
    return attrs.evolve(side, batches=Layout(batch[:-1], batches.strides[:-1], batches.offset))


def _term(lowering: Lowering, value: Value, shape: tuple[int, ...]) -> ScoreTerm | str:
    number = constant_scalar(value)
    return ScoreTerm.of(lowering, value, shape) if number is None else lowering.element(value).literal(number)


def shape_of(attention: Attention) -> AttentionShape:
    """What is computed."""
    rows, size = attention.queries.size
    keys, columns = attention.values.size
    is_float16 = attention.keys.value.descriptor.data_type == "float16"
    return AttentionShape(attention.batch, rows, keys, size, columns, is_float16)


class Unrounded:
    """A walk over a graph, for whose element-wise functions float16 is not rounded: scores stay in float32."""

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering

    def element(self, value: Value) -> Element:
        """How a value is stored, and that floats are computed in float32."""
        element = self._lowering.element(value)
        return attrs.evolve(element, data_type="float32") if element.data_type == "float16" else element

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """As the walk says."""
        return self._lowering.is_inlined(value)
