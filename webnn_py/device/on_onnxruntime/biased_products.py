"""Products of matrices with the row that is added to them, as the one operator that onnxruntime makes of the two.

Where it finds them itself, it infers all shapes anew, and once more for reshapes that it puts around them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.reshapes import origin_of, reshaped
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import activation, arithmetic, matrix
from webnn_py.rewriting.walk import NodeRule, of_operators

OF_MATRIX: Final = 2
"""Its axes."""

OF_SUM: Final = {"alpha": 1.0, "beta": 1.0, "a_transpose": False, "b_transpose": False}


def biased_products(graph: Graph) -> NodeRule | None:
    """Return the rule that computes products and the rows that are added to them at once; None where there are none.

    Not of graphs with a softmax inside: onnxruntime looks for attention in the words that it is drawn in.
    """
    sums: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.operator is activation.softmax and node.results[0] not in graph.outputs.values():
            return None
        if node.operator is arithmetic.add and (product := _product_in(node)) is not None:
            sums[node.results[0]] = product
    if not sums:
        return None
    uses = Counter([value for node in graph.nodes for value in node.inputs])
    uses.update(graph.outputs.values())

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        product = sums.get(node.results[0])
        if product is None or uses[product] > 1:
            return None
        made = _as_one(current)
        return None if made is None else {node.results[0]: made}

    return of_operators(replace, arithmetic.add)


def _product_in(add: Node) -> Output | None:
    """The operand of a sum that is a product, if the other one is a row of constants."""
    a, b = add.inputs
    product, row = (b, a) if isinstance(a, Constant) else (a, b)
    if not isinstance(product, Output) or not isinstance(row, Constant) or not isinstance(row.data, np.ndarray):
        return None
    if product.node.operator is not matrix.matmul or product.descriptor.data_type != "float32":
        return None
    shape, columns = product.descriptor.shape, product.descriptor.shape[-1]
    is_row = row.descriptor.shape == (columns,) or (len(shape) == OF_MATRIX and row.descriptor.shape == (1, columns))
    return product if is_row and product.node.inputs[1].descriptor.rank == OF_MATRIX else None


def _as_one(add: Node) -> Value | None:
    """The sum, of rows one below the other, and as it was; None where the product is something else by now."""
    product = _product_in(add)
    if product is None:
        return None
    (a, b), shape = product.node.inputs, product.descriptor.shape
    row = add.inputs[1] if add.inputs[0] is product else add.inputs[0]
    rows = math.prod(shape[:-1])
    is_flat = len(shape) == OF_MATRIX
    operands = {
        "a": a if is_flat else reshaped(origin_of(a), (rows, a.descriptor.shape[-1]), product.node),
        "b": b,
        "c": row,
    }
    output = add.outputs[0] if is_flat else MLOperandDescriptor("float32", (rows, shape[-1]))
    drawn = (*product.node.drawn, *add.drawn)
    node = Node(matrix.gemm, operands, OF_SUM, (output,), product.node.label or add.label, drawn)
    return reshaped(node.results[0], shape, add)
