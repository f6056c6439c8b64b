"""bfloat16 and float8 of the proposal "low-precision", computed in float32.

Between nodes they are float32 numbers that the format has. Inputs and constants are converted from bits, outputs to
bits, and each result is rounded once, except where its elements are elements of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from webnn_py import low_precision
from webnn_py.descriptors import FLOAT8, LOW_PRECISION, MLOperandDataType, MLOperandDescriptor, stored
from webnn_py.device.on_numpy.routines.blocks import in_blocks
from webnn_py.device.on_numpy.table import Array, Kernel, kernel
from webnn_py.graph import Constant, Graph, Input, Node, Value
from webnn_py.operators import conversion
from webnn_py.operators.casting import cast_number
from webnn_py.operators.declaration import Operator, of_operands
from webnn_py.operators.decomposing.moving import blockwise_expand
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import output
from webnn_py.rewriting.builder import RewriteBuilder

LowPrecision = Literal["bfloat16", "float8e4m3"]

ALLOCATED: Final = 40
"""The bytes for each element that rounding allocates temporarily."""

_NUMBERS: Final = frozenset({"max_value", "min_value", "value"})
"""Options that are cast to the operand's data type, and may be integers."""


def _of_bits(input: MLOperand, data_type: LowPrecision, *, label: str = "") -> MLOperandDescriptor:
    return output("float32", input.shape)


def _to_bits(input: MLOperand, data_type: LowPrecision, *, label: str = "") -> MLOperandDescriptor:
    return stored(MLOperandDescriptor(cast("MLOperandDataType", data_type), input.shape))


OF_BITS: Final = Operator(_of_bits, "numberOfBits", {})
ROUND: Final = Operator(_of_bits, "roundToLowPrecision", {})
TO_BITS: Final = Operator(_to_bits, "bitsOfNumber", {})


def in_float32(graph: Graph) -> Graph:
    """Return the graph with float32 in the place of low precision, and bits as its inputs and outputs."""
    if not any(descriptor.data_type in LOW_PRECISION for descriptor in graph.descriptors):
        return graph
    return _Emulation(graph).emulated


class _Emulation:
    """The values that stand for those of a graph, and the graph of these."""

    def __init__(self, graph: Graph) -> None:
        self._values: dict[Value, Value] = {}
        inputs = {name: Input(stored(value.descriptor), name) for name, value in graph.inputs.items()}
        for name, value in graph.inputs.items():
            self._values[value] = _numbers(inputs[name], value.descriptor)
        for node in graph.nodes:
            self._values.update(zip(node.results, self._drawn(node), strict=True))
        outputs = {name: self._stored(value) for name, value in graph.outputs.items()}
        reached = Graph.reaching(outputs)
        self.emulated = Graph(inputs, reached.outputs, reached.nodes)

    def _number(self, value: Value) -> Value:
        """Return the float32 that stands for a value, or the value itself."""
        if value not in self._values and isinstance(value, Constant):
            bits = Constant(stored(value.descriptor), value.data, value.key)
            self._values[value] = _numbers(bits, value.descriptor) if _is_low(value.descriptor) else value
        return self._values[value]

    def _stored(self, value: Value) -> Value:
        number = self._number(value)
        if not _is_low(value.descriptor):
            return number
        builder = RewriteBuilder()
        return builder.value(builder._append(TO_BITS, (builder.operand(number), value.descriptor.data_type), {}))

    def _drawn(self, node: Node) -> Sequence[Value]:
        builder = RewriteBuilder(node.label, node.drawn)
        operands = of_operands(node.operands, lambda value: builder.operand(self._number(value)))
        if not any(map(_is_low, (*(value.descriptor for value in node.inputs), *node.outputs))):
            values = of_operands(operands, builder.value)
            return Node(node.operator, values, node.options, node.outputs, node.label, node.drawn).results
        draw = _DRAWN.get(node.operator, _by_itself)
        drawn = draw(builder, node, operands)
        selects = bool(node.operator.selected_operands)
        results = []
        for operand, descriptor in zip(drawn, node.outputs, strict=True):
            is_exact = selects or not _is_low(descriptor)
            results.append(operand if is_exact else _rounded(builder, operand, descriptor.data_type))
        return [builder.value(result) for result in results]


def _is_low(descriptor: MLOperandDescriptor) -> bool:
    return descriptor.data_type in LOW_PRECISION


def _numbers(bits: Value, descriptor: MLOperandDescriptor) -> Value:
    """Return the float32 that stands for an input or a constant of this descriptor."""
    if not _is_low(descriptor):
        return bits
    builder = RewriteBuilder()
    return builder.value(builder._append(OF_BITS, (builder.operand(bits), descriptor.data_type), {}))


def _rounded(builder: RewriteBuilder, operand: MLOperand, data_type: MLOperandDataType) -> MLOperand:
    rounded: MLOperand = builder._append(ROUND, (operand, data_type), {})
    return rounded


Draw = Callable[[RewriteBuilder, Node, Mapping[str, Any]], Sequence[MLOperand]]
"""Draws a node on float32; its results are rounded afterwards."""


def _by_itself(builder: RewriteBuilder, node: Node, operands: Mapping[str, Any]) -> Sequence[MLOperand]:
    data_type = next(value.descriptor.data_type for value in node.inputs if _is_low(value.descriptor))
    options = {
        name: cast_number(value, data_type)
        if isinstance(value, float) or (name in _NUMBERS and value is not None)
        else value
        for name, value in node.options.items()
    }
    drawn = builder._append(node.operator, (), {**operands, **options})
    return drawn if isinstance(drawn, list) else [drawn]


def _cast(builder: RewriteBuilder, node: Node, operands: Mapping[str, Any]) -> Sequence[MLOperand]:
    target = node.outputs[0].data_type
    return [operands["input"] if target in LOW_PRECISION else builder.cast(operands["input"], target)]


def _quantize(builder: RewriteBuilder, node: Node, operands: Mapping[str, Any]) -> Sequence[MLOperand]:
    if node.outputs[0].data_type != FLOAT8:
        return _by_itself(builder, node, operands)
    shape = node.outputs[0].shape
    x, scale, zero = (builder.cast(operand, "float32") for operand in operands.values())
    steps = builder.div(x, blockwise_expand(builder, scale, shape))
    return [builder.add(steps, blockwise_expand(builder, zero, shape))]


def _dequantize(builder: RewriteBuilder, node: Node, operands: Mapping[str, Any]) -> Sequence[MLOperand]:
    if node.operand("input").data_type != FLOAT8:
        return _by_itself(builder, node, operands)
    shape = node.outputs[0].shape
    x, scale, zero = (builder.cast(operands[name], "float32") for name in ("input", "scale", "zero_point"))
    steps = builder.sub(x, blockwise_expand(builder, zero, shape))
    product = builder.mul(steps, blockwise_expand(builder, scale, shape))
    return [builder.cast(product, "float16") if node.outputs[0].data_type == "float16" else product]


_DRAWN: Final[Mapping[Operator[..., Any], Draw]] = {
    conversion.cast: _cast,
    conversion.quantize_linear: _quantize,
    conversion.dequantize_linear: _dequantize,
}


@kernel(OF_BITS)
def of_bits(node: Node) -> Kernel:
    data_type = node.options["data_type"]

    def run(bits: Array, numbers: Array) -> None:
        numbers[...] = low_precision.numbers_of(bits, data_type)

    return in_blocks(node, run, allocated=ALLOCATED)


@kernel(TO_BITS)
def to_bits(node: Node) -> Kernel:
    data_type = node.options["data_type"]

    def run(numbers: Array, bits: Array) -> None:
        bits[...] = low_precision.to_bits(numbers, data_type).view(bits.dtype)

    return in_blocks(node, run, allocated=ALLOCATED)


@kernel(ROUND)
def round_to_low_precision(node: Node) -> Kernel:
    data_type = node.options["data_type"]

    def run(x: Array, y: Array) -> None:
        y[...] = low_precision.rounded(x, data_type)

    return in_blocks(node, run, allocated=ALLOCATED)
