"""The smallest right call of every operator, with every operand that it has, for any data types and ranks.

:func:`minimal` gives the arguments by name; operands are :class:`Tensor`, to be drawn as inputs. Options that are no
operands are left out unless the call needs them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from spec_tests.support.computing import compute
from webnn_py import MLContext, MLGraphBuilder, MLOperand
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.limits import TensorLimits
from webnn_py.core.operators.registry import OPERATORS


@attrs.frozen
class Tensor:
    """The data type and shape of an operand."""

    data_type: str
    shape: tuple[int, ...]


Arguments = dict[str, Any]
Ranks = Mapping[str, int]


def cube(rank: int) -> tuple[int, ...]:
    """Two along every axis."""
    return (2,) * rank


# --- shapes and other arguments, by operator ---------------------------------------------------------------------


def cubes(ranks: Ranks) -> Arguments:
    """Every operand a cube: for operators whose operands broadcast, or are one."""
    return {name: cube(rank) for name, rank in ranks.items()}


def along_first_axis(ranks: Ranks) -> Arguments:
    return cubes(ranks) | {"axis": 0}


def images(_ranks: Ranks) -> Arguments:
    return {"input": (1, 2, 3, 3), "filter": (2, 2, 1, 1), "scale": (2,), "bias": (2,)}


def batch_normalization(ranks: Ranks) -> Arguments:
    return {name: cube(rank) for name, rank in ranks.items()} | {"axis": 0}


def layer_normalization(ranks: Ranks) -> Arguments:
    normalized = max(ranks["scale"], ranks["bias"])
    shape = cube(max(ranks["input"], normalized))
    return {"input": shape, "scale": cube(normalized), "bias": cube(normalized), "axes": list(range(normalized))}


def of_input_shape(argument: str) -> Callable[[Ranks], Arguments]:
    return lambda ranks: cubes(ranks) | {argument: list(cube(ranks["input"]))}


def concat(ranks: Ranks) -> Arguments:
    return {"inputs": [cube(ranks["inputs"])] * 2, "axis": 0}


def pad(ranks: Ranks) -> Arguments:
    ones = [1] * ranks["input"]
    return cubes(ranks) | {"beginning_padding": ones, "ending_padding": ones}


def slice_(ranks: Ranks) -> Arguments:
    return cubes(ranks) | {"starts": [0] * ranks["input"], "sizes": [1] * ranks["input"]}


def gather_nd(ranks: Ranks) -> Arguments:
    return {"input": cube(ranks["input"]), "indices": (1,) * ranks["indices"]}


def scatter_nd(ranks: Ranks) -> Arguments:
    rank, of_indices = ranks["input"], ranks["indices"]
    if ranks["updates"]:
        rank, of_indices = ranks["updates"], 2
    return {
        "input": cube(rank),
        "indices": (1,) * of_indices,
        "updates": (1,) * (of_indices - 1) + cube(rank - 1),
    }


def recurrent(gates: int, peepholes: int, *, cell: bool) -> Callable[[Ranks], Arguments]:
    """One step of one feature, two hidden ones."""

    def shapes(ranks: Ranks) -> Arguments:
        outer = () if cell else (1,)
        of_operands = {
            "input": (1, 1),
            "weight": (2 * gates, 1),
            "recurrent_weight": (2 * gates, 2),
            "bias": (2 * gates,),
            "recurrent_bias": (2 * gates,),
            "peephole_weight": (2 * peepholes,),
        }
        states = ["hidden_state", "cell_state", "initial_hidden_state", "initial_cell_state"]
        all_shapes = of_operands | dict.fromkeys(states, (1, 2))
        arguments: Arguments = {name: (*outer, *all_shapes[name]) for name in ranks}
        return arguments | {"hidden_size": 2} | ({} if cell else {"steps": 1})

    return shapes


SHAPES: dict[str, Callable[[Ranks], Arguments]] = {
    "arg_max": along_first_axis,
    "arg_min": along_first_axis,
    "average_pool2d": images,
    "batch_normalization": batch_normalization,
    "cast": lambda ranks: cubes(ranks) | {"data_type": "int32"},
    "concat": concat,
    "conv2d": images,
    "conv_transpose2d": images,
    "cumulative_sum": along_first_axis,
    "expand": of_input_shape("new_shape"),
    "gather_nd": gather_nd,
    "gru": recurrent(3, 0, cell=False),
    "gru_cell": recurrent(3, 0, cell=True),
    "instance_normalization": images,
    "l2_pool2d": images,
    "layer_normalization": layer_normalization,
    "lstm": recurrent(4, 3, cell=False),
    "lstm_cell": recurrent(4, 3, cell=True),
    "max_pool2d": images,
    "pad": pad,
    "reshape": of_input_shape("new_shape"),
    "scatter_nd": scatter_nd,
    "slice": slice_,
    "softmax": along_first_axis,
    "split": lambda ranks: cubes(ranks) | {"splits": 2},
    "tile": of_input_shape("repetitions"),
}
"""How the others than :func:`cubes` are called."""


# --- calls -------------------------------------------------------------------------------------------------------


def operand_rows(operator: Operator[..., Any]) -> dict[str, TensorLimits]:
    """The rows of the limits that speak of operands, in the order of the parameters."""
    return {name: operator.limits[name] for name, parameter in operator.parameters.items() if parameter.is_operand}


def source(operator: Operator[..., Any], operand: str, relation: str) -> str:
    """The operand whose data type (``type_of``) or rank (``rank_of``) this one shares in the end; maybe itself."""
    other = getattr(operator.limits[operand], relation)
    return operand if other is None else source(operator, other, relation)


def minimal(name: str, *, data_type: Mapping[str, str] | None = None, rank: Ranks | None = None) -> Arguments:
    """Return the arguments of a correct call.

    Args:
        name: the operator's Python name.
        data_type: an operand's data type; those that share it have it too. Otherwise the first allowed one.
        rank: an operand's rank, likewise. Otherwise the lowest allowed one.
    """
    operator = OPERATORS[name]
    rows = operand_rows(operator)
    types = {source(operator, operand, "type_of"): given for operand, given in (data_type or {}).items()}
    wanted = {source(operator, operand, "rank_of"): given for operand, given in (rank or {}).items()}

    def rank_of(operand: str) -> int:
        origin = source(operator, operand, "rank_of")
        return wanted.get(origin, rows[origin].ranks.min)

    def tensor_type(operand: str) -> str:
        origin = source(operator, operand, "type_of")
        return types.get(origin, rows[origin].data_types[0])

    shapes = SHAPES.get(name, cubes)({operand: rank_of(operand) for operand in rows})
    arguments: Arguments = {}
    for key in operator.parameters:
        if key in rows and isinstance(shapes[key], list):
            arguments[key] = [Tensor(tensor_type(key), shape) for shape in shapes[key]]
        elif key in rows:
            arguments[key] = Tensor(tensor_type(key), shapes[key])
        elif key in shapes:
            arguments[key] = shapes[key]
    return arguments


def draw_operands(builder: MLGraphBuilder, arguments: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The arguments with an input drawn for each tensor; the inputs are called as the parameters are."""

    def draw(value: Any, name: str) -> MLOperand:
        return builder.input(f"{prefix}{name}", data_type=value.data_type, shape=value.shape)

    drawn: dict[str, Any] = {}
    for key, value in arguments.items():
        if isinstance(value, Tensor):
            drawn[key] = draw(value, key)
        elif isinstance(value, list) and value and isinstance(value[0], Tensor):
            drawn[key] = [draw(item, f"{key}[{index}]") for index, item in enumerate(value)]
        else:
            drawn[key] = value
    return drawn


def outputs_of(drawn: MLOperand | list[MLOperand]) -> dict[str, MLOperand]:
    """Name the results of a method as the outputs of a graph."""
    return {f"output{i}": operand for i, operand in enumerate(drawn if isinstance(drawn, list) else [drawn])}


def tensors_of(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield the operands of a call, by the names of the inputs that :func:`draw_operands` draws."""
    for key, value in arguments.items():
        if isinstance(value, Tensor):
            yield key, value
        elif isinstance(value, list):
            yield from ((f"{key}[{index}]", item) for index, item in enumerate(value) if isinstance(item, Tensor))


def filled(arguments: Mapping[str, Any], number: float) -> dict[str, np.ndarray]:
    """Return an array of one number for every operand."""
    return {name: np.full(tensor.shape, number, tensor.data_type) for name, tensor in tensors_of(arguments)}


async def computed(
    context: MLContext, name: str, arguments: Mapping[str, Any], feeds: Mapping[str, np.ndarray], **more: Any
) -> dict[str, np.ndarray]:
    """Draw one operator, and return what it computes; ``more`` are arguments, too."""
    builder = MLGraphBuilder(context)
    drawn = getattr(builder, name)(**draw_operands(builder, arguments), **more)
    return await compute(context, builder, feeds, outputs_of(drawn))
