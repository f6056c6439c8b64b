"""What kernels read and write: tensors as they lie, or as element-wise nodes make them of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from webnn_py.descriptors import FOUR_BITS, MLOperandDataType
from webnn_py.device.on_wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import Element
from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.partial_sums import PartialSums
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.graph import Node, Output, Value

STORED_AS: Final[dict[str, MLOperandDataType]] = {
    "f32": "float32",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
}
"""The data type in which values of a computing type are kept between two kernels."""


@attrs.frozen
class TensorOperand:
    """A tensor that a kernel reads.

    Attributes:
        buffer: where it lies.
        element: how its data type is stored.
        layout: its elements, by the axes of the shape that the kernel works on.
    """

    buffer: Buffer
    element: Element
    layout: Layout

    @classmethod
    def of(cls, lowering: Lowering, value: Value) -> TensorOperand:
        """A value as it lies."""
        place = lowering.place(value)
        return cls(place.buffer, lowering.element(value), place.layout)

    @property
    def data_type(self) -> MLOperandDataType:
        """The data type."""
        return self.element.data_type


@attrs.frozen
class ScalarOperand:
    """A number that stands for every element of a tensor.

    Attributes:
        text: the number, as WGSL.
    """

    text: str


@attrs.frozen
class SummedOperand:
    """A product that lies in parts, which are added up where a kernel reads it.

    Attributes:
        parts: the parts, of float32.
        element: how the product would be stored: to that it is rounded.
    """

    parts: tuple[TensorOperand, ...]
    element: Element

    @classmethod
    def of(cls, lowering: Lowering, sums: PartialSums) -> SummedOperand:
        """What a product has left."""
        float32 = lowering.features.element("float32")
        shape = sums.product.descriptor.shape
        layouts = (attrs.evolve(Layout.dense(shape), offset=part * sums.distance) for part in range(sums.parts))
        parts = tuple(TensorOperand(sums.buffer, float32, layout) for layout in layouts)
        return cls(parts, lowering.element(sums.product))


@attrs.frozen
class FusedOperand:
    """A tensor that element-wise nodes make of others, where a kernel reads it.

    Attributes:
        fused: the nodes.
        terms: what they read.
        layout: how most of that lies, so that it is read as it lies best.
    """

    fused: ElementwiseFunction
    terms: tuple[TensorOperand | ScalarOperand | SummedOperand, ...]
    layout: Layout


KernelOperand = TensorOperand | ScalarOperand | SummedOperand | FusedOperand
"""What a kernel may read."""


def read_or_fuse(lowering: Lowering, value: Value, spare_buffers: int) -> TensorOperand | FusedOperand:
    """A value that a kernel reads, and reads once: computed there, where nothing else needs it.

    Args:
        lowering: the walk.
        value: the operand that the operator's entry says is computed.
        spare_buffers: what the kernel can bind for it.
    """
    sums = lowering.left(value)
    if sums is not None:
        return _added_up(lowering, value, sums, spare_buffers)
    last = lowering.deferred(value)
    is_fused = last is not None and Variant.OPERAND_FUSION.is_on
    fused = ElementwiseFunction.of(lowering, last, is_stored=False) if last is not None and is_fused else None
    if fused is None or len(_bound(fused.leaves)) > spare_buffers or any(map(_is_packed, fused.leaves)):
        return TensorOperand.of(lowering, value)
    shape = value.descriptor.shape
    terms = tuple(_term(lowering, leaf, shape) for leaf in fused.leaves)
    wide = {
        term.layout
        for leaf, term in zip(fused.leaves, terms, strict=True)
        if isinstance(term, TensorOperand) and leaf.descriptor.element_count == value.descriptor.element_count
    }
    return FusedOperand(fused, terms, wide.pop() if len(wide) == 1 else Layout.dense(shape))


def _added_up(lowering: Lowering, value: Value, sums: PartialSums, spare_buffers: int) -> TensorOperand | FusedOperand:
    """What element-wise nodes make of a product that lies in parts."""
    assert isinstance(value, Output)  # noqa: S101 - a product's node or one behind it returns it
    fused = ElementwiseFunction.of(lowering, value.node, sums.product, is_stored=False)
    _, *others = fused.leaves
    if 1 + len(_bound(others)) > spare_buffers or any(map(_is_packed, others)):
        return TensorOperand.of(lowering, value)
    shape = value.descriptor.shape
    terms = SummedOperand.of(lowering, sums), *(_term(lowering, leaf, shape) for leaf in others)
    return FusedOperand(fused, terms, Layout.dense(shape))


def _is_packed(value: Value) -> bool:
    """Whether two elements lie in a byte, of which only element-wise kernels know."""
    return value.descriptor.data_type in FOUR_BITS


def _bound(values: Sequence[Value]) -> set[Value]:
    """Those of some values that take a buffer."""
    return {value for value in values if constant_scalar(value) is None}


def _term(lowering: Lowering, value: Value, shape: tuple[int, ...]) -> TensorOperand | ScalarOperand:
    """A value that is broadcast to a shape."""
    element = lowering.element(value)
    number = constant_scalar(value)
    if number is not None:
        return ScalarOperand(element.literal(number))
    place = lowering.near(value)
    return TensorOperand(place.buffer, element, place.layout.broadcast(shape))


@attrs.frozen
class FusedEpilogue:
    """The element-wise nodes behind an operator that its kernel computes before it stores.

    Attributes:
        computed: how the operator's own result would be stored.
        fused: the nodes; what they read first is that.
        terms: what they read besides.
        shape: the shape of all these.
    """

    computed: Element
    fused: ElementwiseFunction
    terms: tuple[TensorOperand | ScalarOperand, ...]
    shape: tuple[int, ...]


@attrs.frozen
class StoreTarget:
    """A dense tensor that a kernel writes.

    Attributes:
        buffer: where it goes.
        element: how its data type is stored.
        epilogue: what is computed of the results before they are stored; None if nothing is.
    """

    buffer: Buffer
    element: Element
    epilogue: FusedEpilogue | None = None

    @classmethod
    def of(cls, lowering: Lowering, value: Value) -> StoreTarget:
        """A value that an operator puts out."""
        return cls(lowering.target(value), lowering.element(value))

    @classmethod
    def with_epilogue(cls, lowering: Lowering, value: Value, own_buffers: int) -> StoreTarget:
        """What element-wise nodes that alone read it make of a value, if there are any; otherwise the value.

        Args:
            lowering: the walk.
            value: what the operator puts out.
            own_buffers: so many the kernel that writes the target binds otherwise, the target among them.
        """
        last = lowering.epilogue(value, lowering.features.max_storage_buffers - own_buffers)
        if last is None:
            return cls.of(lowering, value)
        fused, shape = ElementwiseFunction.of(lowering, last, value), value.descriptor.shape
        terms = tuple(_term(lowering, leaf, shape) for leaf in fused.leaves[1:])
        target = cls.of(lowering, fused.result)
        return attrs.evolve(target, epilogue=FusedEpilogue(lowering.element(value), fused, terms, shape))

    @classmethod
    def between(cls, lowering: Lowering, kind: str, count: int) -> StoreTarget:
        """Memory for ``count`` values of a computing type, from one kernel of an operator to the next."""
        element = lowering.features.element(STORED_AS[kind])
        return cls(Buffer("block", count * (8 if kind in ("i64", "u64") else 4)), element)

    @property
    def terms(self) -> tuple[TensorOperand | ScalarOperand, ...]:
        """What is read for what is computed of the results."""
        return () if self.epilogue is None else self.epilogue.terms

    @property
    def epilogue_buffers(self) -> int:
        """How many buffers are bound for what is computed of the results."""
        return 0 if self.epilogue is None else len(_bound(self.epilogue.fused.leaves[1:]))

    def operand(self, shape: Sequence[int]) -> TensorOperand:
        """What was written, to be read again with this shape."""
        return TensorOperand(self.buffer, self.element, Layout.dense(shape))


def label_of(node: Node, source: TensorOperand | FusedOperand, target: StoreTarget) -> str:
    """The operator, its data type, and the operators before and behind it that its kernels compute."""
    words = [source.fused.label] if isinstance(source, FusedOperand) else []
    words.append(f"{node.operator.spec_name} {next(iter(node.inputs)).descriptor.data_type}")
    if target.epilogue is not None:
        words.append(target.epilogue.fused.label)
    return " ".join(words)
