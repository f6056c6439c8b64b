"""Sequences of tensors: how many there are is known while building, and nothing of a sequence is left in the graph."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from onnx import NodeProto, helper

from webnn_py.core.decompositions.common import cut
from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.conversion.scopes import Converted, TensorSequence, tensor_of
from webnn_py.onnx_models.rule_helpers.axes import counted, integer, integers
from webnn_py.onnx_models.rule_helpers.concatenation import joined, stacked

POINTER: Final = 8
"""The bytes that an item of a sequence takes, besides the tensor itself."""

Attributes = Mapping[str, Any]
Arguments = Sequence[Converted]
Rule = Callable[[ConversionContext, Arguments, Attributes], Converted]


def sequence_result(node: NodeProto, values: Arguments, context: ConversionContext) -> Converted:
    """Return the result of an operator of ``SEQUENCE_OPERATORS``.

    Raises:
        Refused: its inputs do not fit, or what they say is not known while building.
    """
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    return SEQUENCE_OPERATORS[node.op_type](context, values, attributes)


def _sequence(context: ConversionContext, values: Arguments) -> tuple[Value, ...]:
    """Return the items of the first input; another sequence made of them is a copy."""
    value = values[0] if values else None
    if not isinstance(value, TensorSequence):
        raise Refused("its first input is no sequence of tensors; it must be one")
    context.expenses.add_bytes(POINTER * len(value.items))
    return value.items


def _place(context: ConversionContext, values: Arguments, index: int, allowed: range) -> int:
    """Return an index into a sequence, counted from the first; by default the last."""
    place, value = allowed.stop - 1, values[index] if index < len(values) else None
    if value is not None:
        place = integer("input position", context.required("input position", tensor_of(value)))
    if place not in allowed:
        refuse("input position", place, f"from {allowed.start} to {allowed.stop - 1}")
    return place if place >= 0 else place - allowed.start


def _empty(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    return TensorSequence(())


def _construct(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    return TensorSequence(tuple(map(tensor_of, values)))


def _insert(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    items = _sequence(context, values)
    count = len(items)
    place = _place(context, values, 2, range(-count, count + 1))
    return TensorSequence((*items[:place], tensor_of(values[1] if len(values) > 1 else None), *items[place:]))


def _erase(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    items = _sequence(context, values)
    count = len(items)
    place = _place(context, values, 1, range(-count, count))
    return TensorSequence(items[:place] + items[place + 1 :])


def _at(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    items = _sequence(context, values)
    if len(values) < 2:
        raise Refused("input position is missing; it is needed")
    return items[_place(context, values, 1, range(-len(items), len(items)))]


def _length(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    return np.array(len(_sequence(context, values)))


def _concat(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    items = _sequence(context, values)
    if not items or "axis" not in attributes:
        raise Refused("its sequence is empty, or attribute axis is missing; both must be there")
    join = stacked if attributes.get("new_axis", 0) else joined
    return join(context, items, attributes["axis"], "the sequence")


def _split(context: ConversionContext, values: Arguments, attributes: Attributes) -> Converted:
    data = tensor_of(values[0] if values else None)
    axis = counted(attributes.get("axis", 0), len(data.shape))
    given = values[1] if len(values) > 1 else None
    length = data.shape[axis]
    keeps_axis = given is not None or attributes.get("keepdims", 1)
    sizes = [1] * length if given is None else _sizes(context, tensor_of(given), length)
    context.expenses.add_bytes(POINTER * len(sizes))
    return TensorSequence(tuple(_pieces(context, data, axis, sizes, keeps_axis=bool(keeps_axis))))


def _sizes(context: ConversionContext, given: Value, length: int) -> list[int]:
    known = context.required("input split", given)
    sizes = list(integers("input split", known))
    if known.ndim == 0 and sizes[0] > 0:
        whole, rest = divmod(length, sizes[0])
        sizes = sizes * whole + [rest] * bool(rest)
    if min(sizes, default=0) < 0 or sum(sizes) != length:
        refuse("input split", tuple(sizes), f"at least 0 everywhere, and together {length}")
    return sizes


def _pieces(
    context: ConversionContext, data: Value, axis: int, sizes: Sequence[int], *, keeps_axis: bool
) -> Iterator[Value]:
    start = 0
    for size in sizes:
        shape = [*data.shape[:axis], *([size] if keeps_axis else []), *data.shape[axis + 1 :]]
        if isinstance(data, np.ndarray):
            yield data[(slice(None),) * axis + (slice(start, start + size),)].reshape(shape)
        elif not size:
            yield np.zeros(shape, data.data_type)
        else:
            piece = cut(context, data, axis, start, start + size)
            yield piece if keeps_axis else context.reshape(piece, shape)
        start += size


SEQUENCE_OPERATORS: Final[Mapping[str, Rule]] = {
    "ConcatFromSequence": _concat,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
"""By operator."""
