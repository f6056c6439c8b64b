"""Small calls of each operator that has a decomposition: together they take all ways through it.

From them follows on which data types and ranks an expanded operator runs.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.operators import idl
from webnn_py.core.operators.declaration import Operator

Example = dict[str, Any]
"""A call's arguments by name; a descriptor stands for an operand, a list of them for a sequence of operands."""

Shapes = dict[str, Any]
"""The operands' shapes and the other arguments that a call needs, by name."""


def _cube(rank: int) -> tuple[int, ...]:
    return (2,) * rank


def _cubes(operator: Operator[..., Any], rank: int) -> Shapes:
    shapes: Shapes = {}
    for name, parameter in operator.parameters.items():
        if parameter.is_operand:
            ranks = operator.limits[name].ranks
            shapes[name] = _cube(min(max(rank, ranks.min), ranks.max))
    return shapes


def _along_last_axis(operator: Operator[..., Any], rank: int) -> Shapes:
    return _cubes(operator, rank) | {"axis": rank - 1}


def _images(_operator: Operator[..., Any], _rank: int) -> Shapes:
    """Right in any layout."""
    return {"input": (2, 2, 2, 2), "filter": (2, 2, 2, 2), "scale": (2,), "bias": (2,)}


def _large_images(_operator: Operator[..., Any], _rank: int) -> Shapes:
    return {"input": (2, 4, 4, 4)}


def _blocks(operator: Operator[..., Any], rank: int) -> Shapes:
    return {"input": (4,) * rank, "scale": _cube(rank), "zero_point": _cube(rank)}


def _gather_nd(_operator: Operator[..., Any], rank: int) -> Shapes:
    return {"input": _cube(rank), "indices": (*_cube(min(rank, 3) - 1), min(rank, 2))}


def _pad(operator: Operator[..., Any], rank: int) -> Shapes:
    return _cubes(operator, rank) | {"beginning_padding": [1] * rank, "ending_padding": [1] * rank}


def _recurrent(gates: int, peepholes: int, *, cell: bool) -> Callable[[Operator[..., Any], int], Shapes]:
    shapes: dict[str, tuple[int, ...]] = {
        "input": (2, 3),
        "weight": (2 * gates, 3),
        "recurrent_weight": (2 * gates, 2),
        "bias": (2 * gates,),
        "recurrent_bias": (2 * gates,),
        "peephole_weight": (2 * peepholes,),
        **dict.fromkeys(("hidden_state", "cell_state", "initial_hidden_state", "initial_cell_state"), (2, 2)),
    }

    def make(operator: Operator[..., Any], _rank: int) -> Shapes:
        given = {name: shapes[name] for name, parameter in operator.parameters.items() if parameter.is_operand}
        if cell:
            return given | {"hidden_size": 2}
        outer = {name: (2 if name == "input" else 1, *shape) for name, shape in given.items()}
        return outer | {"hidden_size": 2, "steps": 2}

    return make


_SHAPES: Mapping[str, Callable[[Operator[..., Any], int], Shapes]] = {
    "arg_max": _along_last_axis,
    "arg_min": _along_last_axis,
    "average_pool2d": _large_images,
    "batch_normalization": _along_last_axis,
    "conv2d": _images,
    "conv_transpose2d": _images,
    "cumulative_sum": _along_last_axis,
    "dequantize_linear": _blocks,
    "gather_nd": _gather_nd,
    "gru": _recurrent(3, 0, cell=False),
    "gru_cell": _recurrent(3, 0, cell=True),
    "instance_normalization": _images,
    "l2_pool2d": _large_images,
    "layer_normalization": lambda operator, rank: _cubes(operator, rank) | {"axes": list(range(rank))[::-1]},
    "lstm": _recurrent(4, 3, cell=False),
    "lstm_cell": _recurrent(4, 3, cell=True),
    "max_pool2d": _large_images,
    "pad": _pad,
    "quantize_linear": _blocks,
    "resample2d": lambda _operator, _rank: {"input": (2, 2, 4, 4), "sizes": [6, 3]},
    "softmax": _along_last_axis,
    "split": lambda _operator, rank: {"input": _cube(rank), "splits": 2, "axis": rank - 1},
    "tile": lambda _operator, rank: {"input": _cube(rank), "repetitions": [2] * rank},
}

_OPTIONS: Mapping[str, Any] = {
    "activations": ["relu", "sigmoid", "tanh"],
    "alpha": 0.5,
    "beta": 0.5,
    "dilations": [2, 2],
    "max_value": 1,
    "min_value": 0,
    "output_padding": [1, 1],
    "padding": [1, 1, 1, 1],
    "strides": [2, 2],
    "window_dimensions": [2, 2],
}
"""Options that make a difference when they are given."""


def examples_of(
    operator: Operator[..., Any], data_types: Mapping[str, MLOperandDataType], rank: int
) -> Iterator[Example]:
    """Calls of an operator with and without each of its options.

    Args:
        operator: one that has a decomposition.
        data_types: of the rows of its limits that can be chosen.
        rank: of those operands that may have it, otherwise the nearest that they may have.
    """
    ranks = [row.ranks for name, row in operator.limits.items() if name in operator.parameters]
    rank = min(max(rank, *(limits.min for limits in ranks), 0), max(limits.max for limits in ranks))
    arguments = _SHAPES.get(operator.name, _cubes)(operator, rank)
    full: Example = {}
    for name, value in arguments.items():
        parameter = operator.parameters.get(name)
        if parameter is not None and parameter.is_operand:
            full[name] = MLOperandDescriptor(_data_type(operator, name, data_types), value)
        elif parameter is not None:
            full[name] = value
    for option in ("data_type", "output_data_type"):
        if option in operator.parameters:
            full[option] = data_types["output"]
    yield full
    yield {name: value for name, value in full.items() if _is_needed(operator, name)}
    for name in full:
        if not _is_needed(operator, name):
            yield {other: value for other, value in full.items() if other != name}
    for name, value in _variations(operator):
        yield from _varied(operator, full, name, value)


def _is_needed(operator: Operator[..., Any], name: str) -> bool:
    kept = ("sizes", "axes", "output_data_type", "axis")
    return operator.parameters[name].required or name in kept


def _data_type(
    operator: Operator[..., Any], name: str, data_types: Mapping[str, MLOperandDataType]
) -> MLOperandDataType:
    other = operator.limits[name].type_of
    return data_types[name] if other is None else _data_type(operator, other, data_types)


def _variations(operator: Operator[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield each flag the other way, each value of an enumeration, and what else makes a difference."""
    for name, parameter in operator.parameters.items():
        annotation = operator.hints[name]
        if parameter.convert is idl.boolean:
            yield name, not parameter.default
        elif get_origin(annotation) is Literal and name != "output_data_type":
            yield from ((name, value) for value in get_args(annotation) if value != parameter.default)
        elif name in _OPTIONS and not parameter.is_operand:
            yield name, _OPTIONS[name]


def _varied(operator: Operator[..., Any], full: Example, name: str, value: Any) -> Iterator[Example]:
    """Yield the call with an option, and what has to change with it."""
    varied = full | {name: value}
    if name == "activations":
        count = 2 if operator.name.startswith("gru") else 3
        yield from (full | {name: [activation] * count} for activation in value)
        return
    if name == "dilations":
        varied["padding"] = [1, 1, 1, 1]
        if "window_dimensions" in operator.parameters:
            varied["window_dimensions"] = [2, 2]
    if name == "output_padding":
        varied["strides"] = [2, 2]
    if name == "direction" and value == "both":
        varied |= {
            key: MLOperandDescriptor(operand.data_type, (2, *operand.shape[1:]))
            for key, operand in full.items()
            if key != "input" and isinstance(operand, MLOperandDescriptor)
        }
    yield varied
