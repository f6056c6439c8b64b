"""A case drawn as a graph of its own, in one of several ways, and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.context import MLContext
from webnn_py.core.operators.operand import MLOperand
from webnn_py.testing.device_cases.tensors import Array, decode

if TYPE_CHECKING:
    from webnn_py.testing.device_cases.files import Case

Drawn = Literal["as_written", "as_constant", "as_view", "as_part"]

Drawer = Callable[[MLGraphBuilder, Array, str], tuple[MLOperand, Array | None]]
"""Draws an operand that has the values of an array: the operand, and what to give the input of that name, if any."""


def as_input(builder: MLGraphBuilder, array: Array, name: str) -> tuple[MLOperand, Array | None]:
    """Draw a graph input."""
    return builder.input(name, data_type=array.dtype, shape=array.shape), array


def as_constant(builder: MLGraphBuilder, array: Array, _name: str) -> tuple[MLOperand, Array | None]:
    """Draw a constant."""
    return builder.constant(array), None


def as_view(builder: MLGraphBuilder, array: Array, name: str) -> tuple[MLOperand, Array | None]:
    """Draw every second element of an input, the axes turned around and each of them backwards."""
    rank, backwards = array.ndim, np.flip(array.T)
    stored = np.zeros([2 * size for size in backwards.shape], array.dtype)
    every_second = (slice(None, None, 2),) * rank
    stored[every_second] = backwards
    operand = builder.input(name, data_type=array.dtype, shape=stored.shape)
    sizes = [2 * size - 1 for size in backwards.shape]
    operand = builder.slice(operand, [0] * rank, sizes, strides=[2] * rank)
    return builder.transpose(builder.reverse(operand)), stored


def as_part(builder: MLGraphBuilder, array: Array, name: str) -> tuple[MLOperand, Array | None]:
    """Draw the middle of an input, all axes but the last reversed: neighbours stay side by side."""
    if not array.ndim:
        return as_view(builder, array, name)
    outer, last = array.shape[:-1], array.shape[-1]
    stored = np.zeros([*(size + 2 for size in outer), last + 8], array.dtype)
    stored[(*(slice(1, -1) for _ in outer), slice(4, -4))] = np.flip(array, tuple(range(len(outer))))
    operand = builder.input(name, data_type=array.dtype, shape=stored.shape)
    operand = builder.slice(operand, [*(1 for _ in outer), 4], array.shape)
    return builder.reverse(operand, axes=list(range(len(outer)))), stored


DRAWERS: Final[Mapping[Drawn, Drawer | None]] = {
    "as_written": None,
    "as_constant": as_constant,
    "as_view": as_view,
    "as_part": as_part,
}
"""The ways in which each case can be built, by name; None: each operand as the case has it."""


async def run(
    context: MLContext, case: Case, drawer: Drawer | None, prepare: Callable[[Array], Array] = np.asarray
) -> list[Array]:
    """Draw, build, dispatch and read one case.

    Args:
        context: where it runs.
        case: the case.
        drawer: how operands are drawn; None: as the case has them.
        prepare: changes the operands before they are drawn.

    Returns:
        An array for each output.
    """
    builder = MLGraphBuilder(context)
    inputs: dict[str, Array] = {}

    def draw(tensor: dict[str, Any], name: str) -> MLOperand:
        draw_operand = drawer or (as_constant if tensor.get("constant", False) else as_input)
        operand, given = draw_operand(builder, prepare(decode(tensor)), name)
        if given is not None:
            inputs[name] = given
        return operand

    operands: dict[str, Any] = {}
    for parameter, given in case.inputs.items():
        if isinstance(given, list):
            operands[parameter] = [draw(tensor, f"{parameter}[{index}]") for index, tensor in enumerate(given)]
        else:
            operands[parameter] = draw(given, parameter)
    drawn = getattr(builder, case.operator)(**operands, **case.options, label=case.name)
    outputs = {f"output{index}": item for index, item in enumerate(drawn if isinstance(drawn, list) else [drawn])}
    return list((await compute(context, builder, inputs, outputs)).values())


async def compute(
    context: MLContext, builder: MLGraphBuilder, inputs: Mapping[str, Array], outputs: Mapping[str, MLOperand]
) -> dict[str, Array]:
    """Build, dispatch and read a drawing for these inputs; nothing is left behind in the context."""
    graph = await builder.build(outputs)
    given = {
        name: await context.create_buffer(data_type=array.dtype, shape=array.shape, writable=True)
        for name, array in inputs.items()
    }
    targets = {
        name: await context.create_buffer(data_type=operand.data_type, shape=operand.shape, readable=True)
        for name, operand in outputs.items()
    }
    for name, buffer in given.items():
        context.write_buffer(buffer, inputs[name])
    needed = {name: buffer for name, buffer in given.items() if name in graph.input_descriptors}
    context.dispatch(graph, needed, targets)
    arrays = {name: await context.read_buffer(target) for name, target in targets.items()}
    for thing in (*given.values(), *targets.values()):
        thing.destroy()
    graph.destroy()
    return arrays
