"""The proposal "int4": 4-bit elements, two in a byte, in graphs that devices compile as graphs of bytes.

See docs/proposals/int4.md. ``open_ml(experimental={"int4"})`` switches it on.

4-bit numbers are constants that ``dequantizeLinear`` reads, and results of ``quantizeLinear``. Bytes hold the same
numbers, and are what devices compute with: a constant is unpacked at build, except for large ones on devices whose
``dequantizeLinear`` reads them packed, and an output of the graph is packed at its end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import attrs
import numpy as np
import trio

from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import FOUR_BITS, INT4, MLBufferDescriptor, MLOperandDataType, MLOperandDescriptor
from webnn_py.core.device.backend import Capabilities, HostArray, OnProgress
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.extension import Compile, Extension
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.in_flight import done
from webnn_py.core.operators import conversion
from webnn_py.core.operators.operand import MLOperand

LEAST_PACKED: Final = 2**12
"""The elements from which on a constant stays packed: it is read at every dispatch; smaller ones are folded once."""

IN_BYTES: Final[Mapping[str, MLOperandDataType]] = {"int4": "int8", "uint4": "uint8"}
"""The data types that replace 4-bit data types in computations."""

MAY_BE_PACKED: Final = frozenset({conversion.dequantize_linear, conversion.quantize_linear})
"""The operators with 4-bit elements."""

RANGES: Final[Mapping[str, tuple[int, int]]] = {"int4": (-8, 7), "uint4": (0, 15)}


class Int4(Extension):
    """The extension: two more data types, for operators that quantize."""

    name = "int4"

    def capabilities(self, capabilities: Capabilities) -> Capabilities:
        """Add the data types."""
        return _with_four_bits(capabilities)

    def buffer(self, descriptor: MLBufferDescriptor) -> None:
        """Refuse a writable buffer of 4-bit elements: only outputs of graphs are of them."""
        if descriptor.data_type in FOUR_BITS and descriptor.writable:
            raise TypeError(
                f"data type is {descriptor.data_type}, of which outputs of graphs are; such a buffer must not be "
                "writable"
            )

    def compile(self, graph: MLGraph, _source: Graph, step: Compile) -> Compile:
        """Replace 4-bit elements before a graph is compiled."""
        device = graph.context.device
        capabilities = device.backend.capabilities

        async def compile_in_bytes(source: Graph, handle: GraphHandle, progress: OnProgress | None) -> None:
            changed = await trio.to_thread.run_sync(in_bytes, source, capabilities, limiter=device.limiter)
            await done(step(changed, handle, progress))

        def compile_changed(source: Graph, handle: GraphHandle, progress: OnProgress | None) -> Awaitable[None] | None:
            if has_four_bits(source, capabilities):
                return compile_in_bytes(source, handle, progress)
            return step(source, handle, progress)

        return compile_changed


@cache
def _with_four_bits(capabilities: Capabilities) -> Capabilities:
    return attrs.evolve(capabilities, packed=FOUR_BITS)


def unpacked(data: HostArray, descriptor: MLOperandDescriptor) -> HostArray:
    """Return the elements of packed bytes, one byte each; the first of two in a byte has the lower bits."""
    halves = np.empty((len(data), 2), np.uint8)
    halves[:, 0] = data & 15
    halves[:, 1] = data >> 4
    elements: HostArray = halves.reshape(-1)[: descriptor.element_count]
    if descriptor.data_type == INT4:
        elements = (elements ^ 8).view(np.int8) - np.int8(8)
    return elements.reshape(descriptor.shape)


def has_four_bits(graph: Graph, capabilities: Capabilities) -> bool:
    """Return whether a graph has 4-bit elements that a device cannot compute with."""
    return any(_is_changed(node, capabilities) for node in graph.nodes if node.operator in MAY_BE_PACKED)


def in_bytes(graph: Graph, capabilities: Capabilities) -> Graph:
    """Return the graph without those 4-bit elements that the device cannot compute with.

    4-bit outputs become outputs of bytes, two elements in each.
    """
    if not has_four_bits(graph, capabilities):
        return graph
    constants: dict[Constant, Constant] = {}

    def in_place_of(value: Value) -> Value:
        if isinstance(value, Constant) and value.descriptor.data_type in FOUR_BITS:
            return constants.setdefault(value, _unpacked_constant(value))
        return value

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if not _is_changed(node, capabilities):
            return None
        builder = RewriteBuilder(node.label, node.drawn)
        operands = {
            name: builder.operand(value if name == "input" and _stays(value, capabilities) else in_place_of(value))
            for name, value in _operands(current)
        }
        result: MLOperand = getattr(builder, node.operator.name)(**operands)
        if node.operator is conversion.quantize_linear:
            lowest, highest = RANGES[node.outputs[0].data_type]
            result = builder.clamp(result, min_value=lowest, max_value=highest)
        return {node.results[0]: builder.value(result)}

    changed = rewrite(graph, replace)
    outputs = {
        name: _packed(changed.outputs[name]) if value.descriptor.data_type in FOUR_BITS else changed.outputs[name]
        for name, value in graph.outputs.items()
    }
    packed = Graph.reaching(outputs)
    return Graph({**graph.inputs, **packed.inputs}, packed.outputs, packed.nodes)


def _operands(node: Node) -> Iterator[tuple[str, Value]]:
    for name, value in node.operands.items():
        if isinstance(value, Value):
            yield name, value


def _is_changed(node: Node, capabilities: Capabilities) -> bool:
    if node.operator not in MAY_BE_PACKED:
        return False
    return any(
        value.descriptor.data_type in FOUR_BITS and not (name == "input" and _stays(value, capabilities))
        for name, value in _operands(node)
    )


def _stays(value: Value, capabilities: Capabilities) -> bool:
    """Return whether a constant that ``dequantizeLinear`` reads stays packed on the device."""
    return (
        _reads_packed(capabilities)
        and value.descriptor.data_type in FOUR_BITS
        and isinstance(value, Constant)
        and value.descriptor.element_count >= LEAST_PACKED
    )


def _reads_packed(capabilities: Capabilities) -> bool:
    claim = capabilities.supports(conversion.dequantize_linear)
    return isinstance(claim, Mapping) and INT4 in claim["input"]


def _unpacked_constant(constant: Constant) -> Constant:
    data: Any = constant.data
    descriptor = MLOperandDescriptor(IN_BYTES[constant.descriptor.data_type], constant.descriptor.shape)
    return Constant(descriptor, unpacked(data, constant.descriptor))


def _packed(value: Value) -> Value:
    """Return the elements of an output two in a byte, with zero bits after the last of an odd number."""
    builder = RewriteBuilder()
    elements = builder.cast(builder.operand(value), "int32")
    sixteen = builder.constant(16, data_type="int32")
    if value.descriptor.data_type == "int8":
        is_negative = builder.lesser(elements, builder.constant(0, data_type="int32"))
        elements = builder.add(elements, builder.mul(builder.cast(is_negative, "int32"), sixteen))
    count = value.descriptor.element_count
    elements = builder.reshape(elements, [count])
    if count % 2:
        elements = builder.concat([elements, builder.constant(bytes(4), data_type="int32", shape=[1])], 0)
    pairs = builder.reshape(elements, [-(-count // 2), 2])
    first, second = builder.split(pairs, 2, axis=1)
    joined = builder.cast(builder.add(first, builder.mul(second, sixteen)), "uint8")
    return builder.value(builder.reshape(joined, [-(-count // 2)]))
