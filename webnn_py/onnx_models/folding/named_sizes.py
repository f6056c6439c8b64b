"""Known values with sizes in them that only a dispatch knows: shapes of inputs with named dimensions.

They are arrays of Python objects, integers and sizes. What models compute shapes with is computed on them element by
element; the sizes that come out are expressions of the names. All of it is right for every size, since what would need
a decision is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
from onnx import NodeProto, TensorProto, helper

from webnn_py.named_sizes.decisions import UnknownSizeError
from webnn_py.named_sizes.expressions import SymbolicSize
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused

INTEGERS: Final = "int64"
"""The type of shapes, and of what is computed with them."""

Inputs = Sequence[StaticValue | None]
Attributes = Mapping[str, Any]


def whole_numbers(sizes: Sequence[object], shape: Sequence[int] | None = None) -> StaticValue:
    """Return integers as an array of int64, or of objects where there are sizes among them."""
    has_names = any(type(size) is SymbolicSize for size in sizes)
    array = np.empty(len(sizes), object if has_names else np.int64)
    array[:] = sizes
    return array if shape is None else array.reshape(tuple(shape))


def has_names(value: object) -> bool:
    """Return whether a value is an array with sizes that only a dispatch knows."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "O":  # strings are objects, too
        return False
    return any(type(item) is SymbolicSize for item in value.reshape(-1).tolist())


def computed(node: NodeProto, values: Sequence[Value | None]) -> list[StaticValue | None] | None:
    """Return the results of a node that computes with sizes that only a dispatch knows; None of any other.

    Raises:
        Refused: the node needs a decision about a size.
    """
    if not any(map(has_names, values)) or not all(value is None or isinstance(value, np.ndarray) for value in values):
        return None
    function = _COMPUTED.get(node.op_type)
    if function is None or node.domain:
        return None
    inputs = [value if isinstance(value, np.ndarray) else None for value in values]
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    if attributes.get("to", TensorProto.INT64) != TensorProto.INT64:
        return None  # of another type they are tensors
    try:
        result = np.asarray(function(inputs, attributes))
    except UnknownSizeError as error:
        raise Refused(f"a dimension {error}") from error
    return [whole_numbers(result.reshape(-1).tolist(), result.shape), *[None] * (len(node.output) - 1)]


def as_tensor(context: ConversionContext, sizes: StaticValue) -> MLOperand:
    """Return integers and sizes as a tensor of int64; a size is the sum of as many ones."""

    def element(size: Any) -> MLOperand:
        if isinstance(size, int):
            return context.reshape(context.number(size, INTEGERS), [1])
        ones = context.expand(context.number(1, "int32"), [size])
        return context.reshape(context.cast(context.reduce_sum(ones), INTEGERS), [1])

    elements = [element(size) for size in sizes.reshape(-1).tolist()]
    return context.reshape(elements[0] if len(elements) == 1 else context.concat(elements, 0), sizes.shape)


def drawn_range(context: ConversionContext, values: Sequence[Value | None]) -> MLOperand:
    """Return the integers from 0 to a size, as Range has them.

    Raises:
        Refused: they begin or go on otherwise.
    """
    limit: Any
    start, limit, step = (value.reshape(-1).tolist()[0] if isinstance(value, np.ndarray) else None for value in values)
    if (start, step) != (0, 1) or not has_names(values[1]):
        raise Refused("a range to a size that is known at dispatch only is supported from 0 in steps of 1")
    context.reserve(8 * limit.high)
    return context.slice(context.constant(np.arange(limit.high)), [0], [limit])


def _by_element(function: Callable[..., object]) -> Callable[[Inputs, Attributes], Any]:
    vectorized = np.frompyfunc(function, 2, 1)
    return lambda inputs, _attributes: reduce(vectorized, inputs)


def _axes(inputs: Inputs, attributes: Attributes, place: int) -> tuple[int, ...] | None:
    """Return axes, which are an attribute, where an empty list means none, or, in later versions, an input."""
    given = inputs[place] if place < len(inputs) else None
    axes = attributes.get("axes") or None if given is None else given.reshape(-1).tolist()
    return None if axes is None else tuple(map(int, axes))


def _slice(inputs: Inputs, attributes: Attributes) -> Any:
    x = inputs[0]
    assert x is not None  # noqa: S101 - the operator needs it
    starts, ends, axes, steps = ([*inputs[1:], None, None, None, None])[:4]
    begin = attributes["starts"] if starts is None else starts.tolist()
    end = attributes["ends"] if ends is None else ends.tolist()
    along = attributes.get("axes", range(len(begin))) if axes is None else axes.tolist()
    by = [1] * len(begin) if steps is None else steps.tolist()
    parts = [slice(None)] * x.ndim
    for axis, first, last, step in zip(along, begin, end, by, strict=True):
        parts[axis] = slice(first, last, step)
    return x[tuple(parts)]


def _reshaped(inputs: Inputs, _attributes: Attributes) -> Any:
    x, shape = inputs
    assert x is not None  # noqa: S101 - the operator needs both
    assert shape is not None  # noqa: S101
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape.tolist())])


def _product(inputs: Inputs, attributes: Attributes) -> Any:
    x, axes = inputs[0], _axes(inputs, attributes, 1)
    assert x is not None  # noqa: S101 - the operator needs it
    if x.ndim != 1 or axes not in (None, (0,), (-1,)):
        raise Refused("a product of sizes is supported of lists alone")
    product = math.prod(x.tolist())
    return whole_numbers([product], [1] if attributes.get("keepdims", 1) else [])


def _selected(condition: object, yes: object, no: object) -> object:
    return yes if condition else no


_COMPUTED: Final[Mapping[str, Callable[[Inputs, Attributes], Any]]] = {
    "Add": _by_element(lambda a, b: a + b),
    "Cast": lambda inputs, _attributes: inputs[0],
    "Concat": lambda inputs, attributes: np.concatenate(list(map(np.asarray, inputs)), attributes["axis"]),
    "Div": _by_element(lambda a, b: a // b),
    "Equal": _by_element(lambda a, b: bool(a == b)),
    "Gather": lambda inputs, attributes: np.take(
        np.asarray(inputs[0]), np.asarray(inputs[1], np.int64), attributes.get("axis", 0)
    ),
    "Identity": lambda inputs, _attributes: inputs[0],
    "Mod": _by_element(lambda a, b: a % b),
    "Mul": _by_element(lambda a, b: a * b),
    "ReduceProd": _product,
    "Reshape": _reshaped,
    "Slice": _slice,
    "Squeeze": lambda inputs, attributes: np.squeeze(np.asarray(inputs[0]), _axes(inputs, attributes, 1)),
    "Sub": _by_element(lambda a, b: a - b),
    "Unsqueeze": lambda inputs, attributes: np.expand_dims(np.asarray(inputs[0]), _axes(inputs, attributes, 1) or ()),
    "Where": lambda inputs, _attributes: np.frompyfunc(_selected, 3, 1)(*map(np.asarray, inputs)),
}
"""The operators that models compute shapes with; sizes are positive, so that integer division rounds down."""
