"""Casts that change nothing: of float32 that is an integer to int32 and back.

Products of integers are drawn so, which WebNN has in floats only.
"""

from __future__ import annotations

from typing import Final

from webnn_py.device.on_numpy.passes.dynamic_quantization import DYNAMIC_DIFFERENCES, HIGHEST
from webnn_py.device.on_numpy.passes.matching import Matched, UnlikeError, check, single
from webnn_py.graph import Node, Output, Value
from webnn_py.operators.casting import INTEGER_RANGES

MOST: Final = 2**30
"""What int32 holds, with a margin for what is rounded in sums of float32."""

BYTES: Final = ("int8", "uint8")


def uncast(node: Node) -> Value:
    """The sums of a product of integers, of which a node is the cast to int32 and back.

    They are never -0, which would become 0: sums begin with 0.

    Raises:
        UnlikeError: the node is something else.
    """
    matched = Matched()
    inner = matched.before(node.operands["input"], "cast")
    sums = single(inner.operands["input"])
    check(node.outputs[0].data_type == sums.descriptor.data_type == "float32")
    check(inner.outputs[0].data_type == "int32")
    product = matched.before(sums, "matmul")
    a, b = (single(product.operands[name]) for name in "ab")
    check(magnitude(a) * magnitude(b) * a.descriptor.shape[-1] <= MOST)
    return sums


def magnitude(value: Value) -> int:
    """The greatest magnitude of a float32 that is an integer, as its nodes tell.

    Raises:
        UnlikeError: they do not.
    """
    if not isinstance(value, Output):
        raise UnlikeError
    node = value.node
    if node.operator is DYNAMIC_DIFFERENCES and value.index == 0:
        return HIGHEST
    if node.operator.selected_operands == ("input",):
        return magnitude(single(node.operands["input"]))
    if node.operator.name == "sub":
        return sum(magnitude(single(node.operands[name])) for name in "ab")
    check(node.operator.name == "cast")
    source = single(node.operands["input"]).descriptor.data_type
    check(source in BYTES)
    return max(map(abs, INTEGER_RANGES[source]))
