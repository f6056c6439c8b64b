"""Widen those constant float16 matrices to float32 at build that a graph multiplies by few rows.

Widening such a matrix at each dispatch takes longer than the product. In float32 it takes twice its bytes, so the total
is limited.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.device.backend import Storage
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.operators import conversion, matrix
from webnn_py.devices.arena import split_constant
from webnn_py.devices.rewriting.node_rules import NodeRule, of_operators
from webnn_py.devices.rewriting.passes import PassContext

FEW: Final = 8
"""The most often that each element of the matrix may be used."""

MOST_BYTES: Final = 2**27
"""The most bytes that all of them in a graph may take in float32; later ones are widened at each dispatch."""


def widened_constants(graph: Graph, _context: PassContext) -> NodeRule:
    """Return the rule that computes float16 products of few rows in float32, rounded once."""
    known = {result for node in split_constant(graph)[0] for result in node.results}
    return of_operators(WidenedConstants(known).replace, matrix.matmul)


class WidenedConstants:
    """The constant matrices of a graph that are kept in float32.

    Args:
        known: the values that depend on no input.
    """

    def __init__(self, known: Container[Value]) -> None:
        self._known = known
        self._wide: dict[Value, Value] = {}
        self._bytes_left = MOST_BYTES

    def replace(self, node: Node, current: Node) -> Mapping[Value, Value] | None:
        """Return the float32 product that takes the place of a float16 one; None where the product stays."""
        output = node.outputs[0]
        if output.data_type != "float16":
            return None
        factors: dict[str, Value] = {
            name: value for name, value in current.operands.items() if isinstance(value, Value)
        }
        multiply_adds = output.element_count * factors["a"].descriptor.shape[-1]
        if not any(self._is_matrix(factors[name], multiply_adds) for name in ("a", "b")):
            return None
        operands = {name: self._widened(value, current) for name, value in factors.items()}
        wide = MLOperandDescriptor("float32", output.shape)
        product = Node(node.operator, operands, node.options, (wide,), node.label, node.drawn)
        return {node.results[0]: _cast(product.results[0], "float16", node)}

    def _is_matrix(self, value: Value, multiply_adds: int) -> bool:
        """Return whether a factor is constant, rarely used, and within the limit.

        Constant buffers are shared between graphs, and stay as they are.
        """
        if not self._is_constant(value) or (isinstance(value, Constant) and isinstance(value.data, Storage)):
            return False
        count = value.descriptor.element_count
        return multiply_adds <= FEW * count and (value in self._wide or 4 * count <= self._bytes_left)

    def _is_constant(self, value: Value) -> bool:
        return isinstance(value, Constant) or value in self._known

    def _widened(self, value: Value, node: Node) -> Value:
        if value in self._wide:
            return self._wide[value]
        wide = _cast(value, "float32", node)
        if self._is_constant(value):
            self._wide[value] = wide
            self._bytes_left -= wide.descriptor.byte_length
        return wide


def _cast(value: Value, data_type: MLOperandDataType, node: Node) -> Value:
    output = MLOperandDescriptor(data_type, value.descriptor.shape)
    options = {"data_type": data_type}
    return Node(conversion.cast, {"input": value}, options, (output,), node.label, node.drawn).results[0]
