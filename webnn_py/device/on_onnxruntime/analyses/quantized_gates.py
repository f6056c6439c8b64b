"""Gates: sigmoids that only multiply what is quantized by its own range further on.

onnxruntime's Sigmoid is good to 2e-7 of 1, however small the result is. Beside steps of a 255th of a range that is
nothing. But a number that lies so near to the middle of two steps is rounded to the one or the other: who quantizes as
onnxruntime does has to multiply by what onnxruntime multiplies by.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from webnn_py.graph import Graph, Node, Value
from webnn_py.operators.composites import DYNAMIC_QUANTIZE

CARRYING: Final = frozenset({"add", "concat", "mul", "reshape", "slice", "split", "sub", "tanh", "transpose"})
"""Operators that make no more of an error of an operand than it is, beside what they multiply it by."""


def gates(graph: Graph) -> frozenset[Value]:
    """The results of float32 of sigmoids whose readers are multiplications, with dynamic quantization behind them."""
    if not any(node.operator is DYNAMIC_QUANTIZE for node in graph.nodes):
        return frozenset()
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.inputs:
            readers[value].append(node)
    quantized: set[Value] = set()
    for node in reversed(graph.nodes):
        is_carried = node.operator.name in CARRYING and not quantized.isdisjoint(node.results)
        if node.operator is DYNAMIC_QUANTIZE or is_carried:
            quantized.update(node.inputs)
    outputs = set(graph.outputs.values())
    sigmoids = (node.results[0] for node in graph.nodes if node.operator.name == "sigmoid")
    return frozenset(
        value
        for value in sigmoids
        if value in quantized
        and value not in outputs
        and value.descriptor.data_type == "float32"
        and all(reader.operator.name == "mul" for reader in readers[value])
    )
