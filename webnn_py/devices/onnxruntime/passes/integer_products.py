"""Multiply 8-bit integers as integers where a graph multiplies them in float32: equal results, several times as fast.

WebNN multiplies float matrices only. A quantized product is therefore drawn as a product of integers less their zero
points, cast to float32, in which every sum of up to 2**24 is exact; or as a product of dequantized values, whose sums
are rounded anyway: the integer product times both scales is rounded less often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Output, Value
from webnn_py.core.operators import conversion, matrix
from webnn_py.devices.onnxruntime.own_operators.integer_products import INTEGER_MATMUL, SCALED_MATMUL
from webnn_py.devices.rewriting.node_rules import NodeRule, of_operators
from webnn_py.devices.rewriting.passes import ReadConstant

EXACT_UP_TO: Final = 2**24
"""Every integer up to this is exact in float32, and so is every partial sum of values whose magnitudes sum to it."""

MOST_SUM: Final = 2**31 - 1
"""The largest int32 sum."""

LEAST_LENGTH: Final = 64
"""The least row length at which a product of dequantized values gains: shorter ones take up to 1.26 times as long."""

LARGEST: Final = 255
"""The largest magnitude of the difference of two 8-bit integers of the same type."""

LEAST_STEP: Final = float(np.finfo(np.float32).smallest_normal)
MOST: Final = float(np.finfo(np.float32).max)

MIDDLE: Final = 128
"""The difference between a uint8 and the int8 at the same position of their ranges."""

BYTES: Final = ("int8", "uint8")


@attrs.frozen
class ShiftedBytes:
    """8-bit integers less a zero point.

    Attributes:
        integers: the integers.
        zero_point: one element, or one for each column; None for 0.
    """

    integers: Value
    zero_point: Value | None


class Unsigned:
    """Constant int8 factors as uint8, each converted once.

    Where int8 is multiplied in pairs, 16-bit sums saturate on processors without VNNI; onnxruntime's own conversion
    (``session.x64quantprecision``) refuses a model in which two products share a constant.

    Args:
        contents: returns the values of constants.
    """

    def __init__(self, contents: ReadConstant) -> None:
        self._contents = contents
        self._made: dict[Value, Constant] = {}
        self._middle = Constant(MLOperandDescriptor("uint8", ()), np.array(MIDDLE, np.uint8))

    def of(self, shifted: ShiftedBytes) -> ShiftedBytes:
        """Return the same differences as uint8: integers and zero point are both greater by 128."""
        if _type_of(shifted.integers) == "uint8":
            return shifted
        zero_point = self._middle if shifted.zero_point is None else self._greater(shifted.zero_point)
        return ShiftedBytes(self._greater(shifted.integers), zero_point)

    def _greater(self, value: Value) -> Constant:
        if value not in self._made:
            assert isinstance(value, Constant)  # noqa: S101 - checked before
            data = np.asarray(_array(value, self._contents).view(np.uint8) ^ np.uint8(MIDDLE))
            key = None if value.key is None else ("greater by 128", value.key)
            self._made[value] = Constant(MLOperandDescriptor("uint8", value.descriptor.shape), data, key)
        return self._made[value]


def integer_products(graph: Graph, contents: ReadConstant) -> NodeRule | None:
    """Return the rule that replaces float products of quantized matrices by integer products of no larger error.

    Args:
        graph: the graph to rewrite.
        contents: returns the values of constants.

    Returns:
        The rule; None where the graph has no 8-bit integers.
    """
    if not any(value.descriptor.data_type in BYTES for node in graph.nodes for value in node.inputs):
        return None

    unsigned = Unsigned(contents)

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator is conversion.cast:
            sums = _sums_before(current)
            return None if sums is None else {node.results[0]: sums}
        product = _product(current, contents, unsigned)
        if product is not None:
            return {node.results[0]: _floats(product)}
        scaled = _scaled_product(current, contents, unsigned)
        return None if scaled is None else {node.results[0]: scaled.results[0]}

    return of_operators(replace, conversion.cast, matrix.matmul)


def _sums_before(cast: Node) -> Value | None:
    """Return the int32 sums of an integer product that a cast reads as float32 and casts back; None for other casts."""
    value = cast.operands["input"]
    if cast.outputs[0].data_type != "int32" or not isinstance(value, Output) or value.node.operator.name != "cast":
        return None
    sums = value.node.operands["input"]
    is_product = isinstance(sums, Output) and sums.node.operator is INTEGER_MATMUL
    return sums if is_product else None  # type: ignore[return-value]


def _product(node: Node, contents: ReadConstant, unsigned: Unsigned) -> Node | None:
    """Return a matrix product as an integer product; None where it is none, or where a float32 sum may be rounded."""
    a, b = shifted_bytes(node.operands["a"]), shifted_bytes(node.operands["b"])
    if a is None or b is None or not _can_be(a, b):
        return None
    if _largest_column(b, contents, EXACT_UP_TO) * LARGEST > EXACT_UP_TO:
        return None
    b = unsigned.of(b)
    named = {"a": a.integers, "b": b.integers, "a_zero_point": a.zero_point, "b_zero_point": b.zero_point}
    operands = {name: value for name, value in named.items() if value is not None}
    output = MLOperandDescriptor("int32", node.outputs[0].shape)
    return Node(INTEGER_MATMUL, operands, {}, (output,), node.label, node.drawn)


def shifted_bytes(value: object) -> ShiftedBytes | None:
    """Return the integers, less their zero point, from which a value is cast to float32; None for other values."""
    if not isinstance(value, Output) or value.node.operator.name != "sub":
        integers = _integers(value)
        return None if integers is None else ShiftedBytes(integers, None)
    integers, zero_point = (_integers(value.node.operands[name]) for name in "ab")
    if integers is None or zero_point is None or _type_of(integers) != _type_of(zero_point):
        return None
    return ShiftedBytes(integers, zero_point) if integers.descriptor.shape == value.descriptor.shape else None


def _integers(value: object) -> Value | None:
    """Return the 8-bit integers from which a value is cast to float32; None for other values."""
    if not isinstance(value, Output) or value.node.operator.name != "cast" or _type_of(value) != "float32":
        return None
    before = value.node.operands["input"]
    return before if isinstance(before, Value) and _type_of(before) in BYTES else None


def _type_of(value: Value) -> str:
    return value.descriptor.data_type


def _can_be(a: ShiftedBytes, b: ShiftedBytes) -> bool:
    """Return whether the second factor is a constant matrix, and onnxruntime supports the zero points.

    Products of int8 by uint8 take onnxruntime up to five times as long as those of float32.
    """
    integers, zero_point = b.integers, b.zero_point
    if _type_of(a.integers) != "uint8":
        return False
    if not isinstance(integers, Constant) or integers.descriptor.rank != 2:
        return False
    if a.zero_point is not None and a.zero_point.descriptor.element_count != 1:
        return False
    if zero_point is None:
        return True
    columns = integers.descriptor.shape[1]
    return isinstance(zero_point, Constant) and zero_point.descriptor.shape in ((), (1,), (columns,), (1, columns))


def _largest_column(b: ShiftedBytes, contents: ReadConstant, most: int) -> int:
    """Return a bound of the columns' sums of magnitudes; their exact maximum where the bound may exceed ``most``."""
    matrix = _array(b.integers, contents)
    zero_point = np.zeros((), np.int16) if b.zero_point is None else _array(b.zero_point, contents).astype(np.int16)
    ends, points = ([int(array.min()), int(array.max())] for array in (matrix, zero_point))
    bound: int = matrix.shape[-2] * max(abs(end - point) for end in ends for point in points)
    if bound * LARGEST <= most:
        return bound
    column: np.int32 = np.abs(matrix - zero_point).sum(axis=-2, dtype=np.int32).max()
    return int(column)


def _array(value: Value, contents: ReadConstant) -> NDArray[Any]:
    assert isinstance(value, Constant)  # noqa: S101 - checked before
    return contents(value).reshape(value.descriptor.shape)


def _floats(node: Node) -> Value:
    """Return the result of a node, cast to float32."""
    output = MLOperandDescriptor("float32", node.outputs[0].shape)
    operands, options = {"input": node.results[0]}, {"data_type": output.data_type}
    return Node(conversion.cast, operands, options, (output,), node.label, node.drawn).results[0]


@attrs.frozen
class Dequantized(ShiftedBytes):
    """8-bit integers less a zero point, times a scale.

    Attributes:
        scale: one element, or one for each column of a single matrix.
    """

    scale: Constant


def _scaled_product(node: Node, contents: ReadConstant, unsigned: Unsigned) -> Node | None:
    """Return a product of dequantized values as an integer product; None where it is none or may give other results."""
    a, b = _dequantized(node.operands["a"]), _dequantized(node.operands["b"])
    if a is None or b is None or a.scale.descriptor.element_count != 1 or _type_of(a.integers) != "uint8":
        return None
    if b.integers.descriptor.shape[-2] < LEAST_LENGTH:
        return None
    if not isinstance(b.integers, Constant) and _type_of(b.integers) != "uint8":
        return None  # it would have to be made unsigned in each run
    most = b.integers.descriptor.shape[-2] * LARGEST * LARGEST
    if most > MOST_SUM and isinstance(b.integers, Constant):
        most = _largest_column(b, contents, MOST_SUM) * LARGEST
    if most > MOST_SUM or not _are_usual(_array(a.scale, contents), _array(b.scale, contents), most):
        return None
    shifted = unsigned.of(b) if isinstance(b.integers, Constant) else b
    named = {
        "a": a.integers,
        "b": shifted.integers,
        "a_scale": a.scale,
        "b_scale": b.scale,
        "a_zero_point": a.zero_point,
        "b_zero_point": shifted.zero_point,
    }
    operands = {name: value for name, value in named.items() if value is not None}
    return Node(SCALED_MATMUL, operands, {}, node.outputs, node.label, node.drawn)


def _dequantized(value: object) -> Dequantized | None:
    """Return the 8-bit integers that constants of one element, or one for each column, dequantize; else None."""
    if not isinstance(value, Output) or value.node.operator.name != "dequantize_linear":
        return None
    integers, scale, zero_point = value.node.inputs
    if _type_of(value) != "float32" or _type_of(integers) not in BYTES:
        return None
    if not isinstance(scale, Constant) or not isinstance(zero_point, Constant):
        return None
    is_one = scale.descriptor.element_count == 1
    by_column = integers.descriptor.rank == 2 and scale.descriptor.shape == (1, integers.descriptor.shape[1])
    return Dequantized(integers, zero_point, scale) if is_one or by_column else None


def _are_usual(a_scale: NDArray[Any], b_scale: NDArray[Any], most: int) -> bool:
    """Return whether neither elements nor sums up to ``most`` overflow, and scale products are positive and normal."""
    a, least, largest = (float(scale) for scale in (a_scale.item(), b_scale.min(), b_scale.max()))
    steps = sorted((a * least, a * largest))
    elements = LARGEST * max(abs(a), abs(least), abs(largest))
    return steps[0] >= LEAST_STEP and elements <= MOST and most * steps[1] <= MOST
