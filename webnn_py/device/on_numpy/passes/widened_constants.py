"""Constant matrices of float16 that a graph multiplies few rows by, kept in float32.

Widening such a matrix at each dispatch takes longer than the product. Kept wide it takes twice its bytes, as in a model
of float32; so there is a bound.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from webnn_py.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.device.backend import Storage
from webnn_py.device.on_numpy.passes.matching import check, single
from webnn_py.graph import Constant, Node, Value
from webnn_py.operators import conversion
from webnn_py.operators.casting import cast_number

PRODUCTS: Final = ("matmul", "gemm")

FEW: Final = 8
"""How often each element of the matrix is used, at most."""

MOST_BYTES: Final = 2**27
"""What all of them in a graph may take in float32; those that come later are widened at each dispatch."""


class WidenedConstants:
    """Makes products of few rows ones of float32, rounded once.

    Args:
        known: the values that depend on no input.
    """

    def __init__(self, known: Container[Value]) -> None:
        self._known = known
        self._wide: dict[Value, Value] = {}
        self._bytes_left = MOST_BYTES

    def product(self, node: Node) -> Value:
        """What takes the place of a product's result.

        Raises:
            UnlikeError: the product stays.
        """
        output = node.outputs[0]
        check(output.data_type == "float16")
        a, b = (single(node.operands[name]) for name in "ab")
        inner = a.descriptor.shape[-2 if node.options.get("a_transpose") else -1]
        check(any(self._is_matrix(value, output.element_count * inner) for value in (a, b)))
        operands = {name: self._widened(single(value), node) for name, value in node.operands.items()}
        factors = {
            name: cast_number(node.options[name], "float16") for name in ("alpha", "beta") if name in node.options
        }
        wide = MLOperandDescriptor("float32", output.shape)
        product = Node(node.operator, operands, {**node.options, **factors}, (wide,), node.label, node.drawn)
        return _cast(product.results[0], "float16", node)

    def _is_matrix(self, value: Value, multiply_adds: int) -> bool:
        """Whether a factor is constant, used little, and within the bound; a constant buffer is shared as it is."""
        if value not in self._known and not isinstance(value, Constant):
            return False
        if isinstance(value, Constant) and isinstance(value.data, Storage):
            return False
        count = value.descriptor.element_count
        return multiply_adds <= FEW * count and (value in self._wide or 4 * count <= self._bytes_left)

    def _widened(self, value: Value, node: Node) -> Value:
        if value in self._wide:
            return self._wide[value]
        wide = _cast(value, "float32", node)
        if value in self._known or isinstance(value, Constant):
            self._wide[value] = wide
            self._bytes_left -= wide.descriptor.byte_length
        return wide


def _cast(value: Value, data_type: MLOperandDataType, node: Node) -> Value:
    output = MLOperandDescriptor(data_type, value.descriptor.shape)
    options = {"data_type": data_type}
    return Node(conversion.cast, {"input": value}, options, (output,), node.label, node.drawn).results[0]
