"""A file's graph, drawn with a builder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from webnn_py.core.message_text import shown
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.registry import BY_SPEC_NAME
from webnn_py.webnn_files.text import CallText, ConstantText, GraphText, Name, StoredTensor, WebnnFileError
from webnn_py.webnn_files.weights import TensorFile

MOST_FILLED: Final = 2**26
"""Bytes of all constants that are made of one number."""


def draw(graph: GraphText, builder: Any, weights: TensorFile | None) -> dict[str, Any]:
    """Draw a graph, and return the operands of its outputs by name.

    Args:
        graph: the graph of a file.
        builder: an ``MLGraphBuilder``.
        weights: the file of weights, if there is one.

    Raises:
        WebnnFileError: a name is undefined, or defined twice; an operator or an argument is unknown; weights are
            missing.
        TypeError: the builder refuses something.
    """
    values: dict[str, Any] = {}

    def enter(name: str, value: Any, line: int) -> None:
        if name in values:
            raise WebnnFileError(f"{_at(line)}the name {shown(name)} is given twice")
        values[name] = value

    for name, descriptor in graph.inputs.items():
        enter(name, builder.input(name, data_type=descriptor.data_type, shape=descriptor.shape), 0)
    _check_filled(graph)
    for name, constant in graph.constants.items():
        descriptor = constant.descriptor
        data = _bytes_of(name, constant, weights)
        enter(name, builder.constant(data, data_type=descriptor.data_type, shape=descriptor.shape), 0)
    for call in graph.calls:
        drawn = _draw(call, builder, values)
        results = drawn if isinstance(drawn, list) else [drawn]
        if len(results) != len(call.outputs):
            raise WebnnFileError(
                f"{_at(call.line)}{call.operator}() has {len(results)} results, and {len(call.outputs)} names for them"
            )
        for name, result in zip(call.outputs, results, strict=True):
            enter(name, result, call.line)
    missing = [name for name in graph.outputs if name not in values]
    if missing:
        raise WebnnFileError(f"the output {shown(missing[0])} is the name of nothing")
    return {name: values[name] for name in graph.outputs}


def _at(line: int) -> str:
    return f"line {line}: " if line else ""


def _bytes_of(name: str, constant: ConstantText, weights: TensorFile | None) -> bytes:
    descriptor = constant.descriptor
    match constant.contents:
        case StoredTensor(stored):
            if weights is None:
                raise WebnnFileError(f"the constant {shown(name)} needs a file of weights, and there is none")
            return weights.read(stored, descriptor)
        case bytes(contents):
            if len(contents) != descriptor.byte_length:
                raise WebnnFileError(
                    f"the constant {shown(name)} has {len(contents)} bytes; {descriptor} has {descriptor.byte_length}"
                )
            return contents
        case number:
            element = np.array(cast_number(number, descriptor.data_type), descriptor.data_type).tobytes()
            return element * descriptor.element_count


def _check_filled(graph: GraphText) -> None:
    """Refuse scalars that would fill memory with a few words of a file."""
    filled = [item.descriptor for item in graph.constants.values() if isinstance(item.contents, int | float)]
    total = sum(descriptor.byte_length for descriptor in filled)
    if total > MOST_FILLED:
        largest = max(filled, key=lambda descriptor: descriptor.byte_length)
        raise WebnnFileError(
            f"constants that are made of one number have {total:,} bytes, the largest is {largest}; it may have "
            f"at most {MOST_FILLED:,} bytes, with all others"
        )


def _draw(call: CallText, builder: Any, values: Mapping[str, Any]) -> Any:
    operator = BY_SPEC_NAME.get(call.operator)
    if operator is None:
        raise WebnnFileError(f"{_at(call.line)}there is no operator {shown(call.operator)}")
    by_name = {parameter.spec_name: parameter for parameter in operator.parameters.values()}
    given = {name: _operand(call, value, values) for name, value in _positional(operator, call)}
    for name, value in call.named.items():
        named = by_name.get(name)
        if named is None or named.name in given:
            wrong = "has no argument" if named is None else "is given twice the argument"
            raise WebnnFileError(f"{_at(call.line)}{call.operator}() {wrong} {shown(name)}")
        if value is not None:
            given[named.name] = _operand(call, value, values) if named.is_operand else _plain(value)
    return getattr(builder, operator.name)(**given)


def _positional(operator: Operator[..., Any], call: CallText) -> Iterator[tuple[str, Any]]:
    """Yield the arguments without names by the operands' names; those of a sequence of operands as one list."""
    given = call.positional
    is_sequence = "Sequence" in str(operator.hints[operator.operand_names[0]])
    if is_sequence and not (len(given) == 1 and isinstance(given[0], list)):
        given = ([*given],)
    if len(given) > len(operator.operand_names):
        raise WebnnFileError(
            f"{_at(call.line)}{call.operator}() is given {len(given)} operands without names; "
            f"it has {len(operator.operand_names)}"
        )
    yield from zip(operator.operand_names, given, strict=False)


def _operand(call: CallText, value: Any, values: Mapping[str, Any]) -> Any:
    match value:
        case list():
            return [_operand(call, item, values) for item in value]
        case Name(text) | str(text) if text in values:
            return values[text]
        case Name(text):
            raise WebnnFileError(f"{_at(call.line)}{shown(text)} is the name of nothing that is declared above")
    raise WebnnFileError(f"{_at(call.line)}{shown(value)} is given to {call.operator}() as an operand; name arguments")


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Name) else [*map(_plain, value)] if isinstance(value, list) else value
