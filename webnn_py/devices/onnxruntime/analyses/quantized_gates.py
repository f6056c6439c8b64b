"""Gates: sigmoids that only multiply values which are dynamically quantized further on.

onnxruntime's Sigmoid has an absolute error of 2e-7, however small the result is. Compared with quantization steps of
a 255th of a range that is negligible. But a number that close to the middle of two steps may be rounded to either:
to quantize as onnxruntime does, a graph has to multiply by the values that onnxruntime multiplies by.
"""

from __future__ import annotations

from typing import Final

from webnn_py.core.graph import Graph, Value
from webnn_py.core.operators import activation, arithmetic
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE

NOT_AMPLIFYING: Final = frozenset({activation.tanh, arithmetic.add, arithmetic.mul, arithmetic.sub})
"""Operators that do not amplify an operand's error, apart from multiplying it by their other operand."""


def quantized_gates(graph: Graph) -> frozenset[Value]:
    """Return the float32 results of sigmoids that only multiplications read, with dynamic quantization behind them."""
    if not any(node.operator is DYNAMIC_QUANTIZE for node in graph.nodes):
        return frozenset()
    quantized: set[Value] = set()
    for node in reversed(graph.nodes):
        passes_errors_on = node.operator.selected_operands or node.operator in NOT_AMPLIFYING
        if node.operator is DYNAMIC_QUANTIZE or (passes_errors_on and not quantized.isdisjoint(node.results)):
            quantized.update(node.inputs)
    sigmoids = (node.results[0] for node in graph.nodes if node.operator is activation.sigmoid)
    return frozenset(
        value
        for value in sigmoids
        if value in quantized
        and value.descriptor.data_type == "float32"
        and all(reader is not None and reader.operator is arithmetic.mul for reader in graph.readers[value])
    )
