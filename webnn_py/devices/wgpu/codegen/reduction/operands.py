"""The operands and targets of kernels: tensors, and fused element-wise nodes before and after the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from webnn_py.core.descriptors import FOUR_BITS, MLOperandDataType
from webnn_py.core.graph import Node, Output, Value
from webnn_py.devices.wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import Element
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.left_to_readers import PartialSums
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.variants import KernelVariant

STORED_AS: Final[dict[str, MLOperandDataType]] = {
    "f32": "float32",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
}
"""The data type in which values of a compute type are stored between two kernels."""


@attrs.frozen
class TensorOperand:
    """A tensor that a kernel reads.

    Attributes:
        buffer: the buffer.
        element: the storage of its data type.
        layout: its layout, broadcast to the shape that the kernel iterates over.
    """

    buffer: Buffer
    element: Element
    layout: Layout

    @classmethod
    def from_value(cls, lowering: Lowering, value: Value) -> TensorOperand:
        """Return the operand of a value."""
        place = lowering.place(value)
        return cls(place.buffer, lowering.element(value), place.layout)


@attrs.frozen
class SummedOperand:
    """A split-K product whose partial sums are added up by the kernel that reads it.

    Attributes:
        parts: the partial sums, in float32.
        element: the storage of the product's data type, to which sums are rounded.
    """

    parts: tuple[TensorOperand, ...]
    element: Element

    @classmethod
    def from_sums(cls, lowering: Lowering, sums: PartialSums) -> SummedOperand:
        """Return the operand of a product's partial sums."""
        float32 = lowering.features.element("float32")
        shape = sums.product.descriptor.shape
        layouts = (attrs.evolve(Layout.dense(shape), offset=part * sums.distance) for part in range(sums.parts))
        parts = tuple(TensorOperand(sums.buffer, float32, layout) for layout in layouts)
        return cls(parts, lowering.element(sums.product))


@attrs.frozen
class FusedOperand:
    """A tensor that fused element-wise nodes compute as a kernel loads it.

    Attributes:
        fused: the nodes.
        terms: their operands.
        layout: the layout of the full-size operands, by which the kernel chooses its loads.
    """

    fused: ElementwiseFunction
    terms: tuple[TensorOperand | SummedOperand | str, ...]
    layout: Layout


KernelOperand = TensorOperand | SummedOperand | FusedOperand | str
"""An operand of a kernel; a tensor whose elements are all one number is its WGSL literal."""


def read_or_fuse(lowering: Lowering, value: Value, spare_buffers: int) -> TensorOperand | FusedOperand:
    """Return the operand of a value that a kernel reads once, with the nodes fused that compute only it.

    Args:
        lowering: the lowering.
        value: the operand that the operator's entry declares as fusible.
        spare_buffers: the buffers that the kernel can bind for it.
    """
    sums = lowering.left(value)
    is_fused = sums is not None or (lowering.deferred(value) is not None and KernelVariant.OPERAND_FUSION.is_on)
    if not is_fused or not isinstance(value, Output):
        return TensorOperand.from_value(lowering, value)
    product = None if sums is None else sums.product
    fused = ElementwiseFunction.ending_at(lowering, value.node, product, is_stored=False)
    summed = () if sums is None else (SummedOperand.from_sums(lowering, sums),)
    leaves = fused.leaves[len(summed) :]
    if len(summed) + len(_bound(leaves)) > spare_buffers or any(map(_is_packed, leaves)):
        return TensorOperand.from_value(lowering, value)
    shape, count = value.descriptor.shape, value.descriptor.element_count
    terms = [_term(lowering, leaf, shape) for leaf in leaves]
    wide = {
        term.layout
        for leaf, term in zip(leaves, terms, strict=True)
        if isinstance(term, TensorOperand) and leaf.descriptor.element_count == count
    }
    layout = wide.pop() if len(wide) == 1 and not summed else Layout.dense(shape)
    return FusedOperand(fused, (*summed, *terms), layout)


def _is_packed(value: Value) -> bool:
    """Return whether a value has 4-bit elements, which only element-wise kernels load."""
    return value.descriptor.data_type in FOUR_BITS


def _bound(values: Sequence[Value]) -> set[Value]:
    """Return the values that need a buffer."""
    return {value for value in values if constant_scalar(value) is None}


def _term(lowering: Lowering, value: Value, shape: tuple[int, ...]) -> TensorOperand | str:
    """Return the operand of a value that is broadcast to a shape."""
    element = lowering.element(value)
    number = constant_scalar(value)
    if number is not None:
        return element.literal(number)
    place = lowering.near(value)
    return TensorOperand(place.buffer, element, place.layout.broadcast(shape))


@attrs.frozen
class FusedEpilogue:
    """The element-wise nodes that are fused behind an operator.

    Attributes:
        computed: the storage of the operator's own result.
        fused: the nodes; their first parameter is that result.
        terms: their other operands.
    """

    computed: Element
    fused: ElementwiseFunction
    terms: tuple[TensorOperand | str, ...]


@attrs.frozen
class StoreTarget:
    """A dense tensor that a kernel writes.

    Attributes:
        buffer: the buffer.
        element: the storage of its data type.
        epilogue: the nodes that are applied before the store; None if there are none.
    """

    buffer: Buffer
    element: Element
    epilogue: FusedEpilogue | None = None

    @classmethod
    def from_value(cls, lowering: Lowering, value: Value) -> StoreTarget:
        """Return the target of an operator's output."""
        return cls(lowering.target(value), lowering.element(value))

    @classmethod
    def with_epilogue(cls, lowering: Lowering, value: Value, own_buffers: int) -> StoreTarget:
        """Return the target of an operator's output, with the element-wise nodes fused that alone read it.

        Args:
            lowering: the lowering.
            value: the operator's output.
            own_buffers: the buffers that the kernel binds without the epilogue, including the target.
        """
        last = lowering.epilogue(value, lowering.features.max_storage_buffers - own_buffers)
        result, epilogue = value, None
        if last is not None:
            fused = ElementwiseFunction.ending_at(lowering, last, value)
            terms = tuple(_term(lowering, leaf, value.descriptor.shape) for leaf in fused.leaves[1:])
            result, epilogue = fused.result, FusedEpilogue(lowering.element(value), fused, terms)
        return cls(lowering.target(result), lowering.element(result), epilogue)

    @classmethod
    def between(cls, lowering: Lowering, kind: str, count: int) -> StoreTarget:
        """Allocate an intermediate of ``count`` values of a compute type, between two kernels of an operator."""
        element = lowering.features.element(STORED_AS[kind])
        return cls(Buffer("block", count * (8 if kind in ("i64", "u64") else 4)), element)

    @property
    def epilogue_buffers(self) -> int:
        """The number of buffers that the epilogue binds."""
        return 0 if self.epilogue is None else len(_bound(self.epilogue.fused.leaves[1:]))

    def operand(self, layout: Layout) -> TensorOperand:
        """Return the written tensor as an operand."""
        return TensorOperand(self.buffer, self.element, layout)


def label_of(node: Node, source: TensorOperand | FusedOperand, target: StoreTarget) -> str:
    """Return the label of an operator's kernels: it, its data type, and the operators fused before and behind it."""
    words = [source.fused.label] if isinstance(source, FusedOperand) else []
    words.append(f"{node.operator.spec_name} {next(iter(node.inputs)).descriptor.data_type}")
    if target.epilogue is not None:
        words.append(target.epilogue.fused.label)
    return " ".join(words)
