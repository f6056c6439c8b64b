"""Recurrent networks: one product of the input and the weight for all time steps, then the steps.

The steps are an operator of their own, that only this device has. A cell, a network of one step, and one whose steps
no kernel here can take are expanded into other operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webnn_py.core.decompositions import recurrent as decomposed
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.message_text import in_brackets
from webnn_py.core.operators import recurrent
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.recurrent import GRU_ACTIVATIONS, LSTM_ACTIVATIONS
from webnn_py.devices.wgpu.codegen.recurrence.cells import Cell
from webnn_py.devices.wgpu.codegen.recurrence.in_one_launch import (
    OneLaunch,
    can_run_in_one_launch,
    emit_in_one_launch,
)
from webnn_py.devices.wgpu.codegen.recurrence.problem import Recurrence, RecurrenceBuffers, vec4s_of
from webnn_py.devices.wgpu.codegen.recurrence.step_by_step import can_run_step_by_step, emit_step_by_step
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import composite, kernels
from webnn_py.devices.wgpu.records.variants import KernelVariant

NETWORKS: Final[dict[Operator[..., Any], Any]] = {
    recurrent.gru: decomposed.gru,
    recurrent.gru_cell: decomposed.gru_cell,
    recurrent.lstm: decomposed.lstm,
    recurrent.lstm_cell: decomposed.lstm_cell,
}

STATES: Final = ("initial_hidden_state", "initial_cell_state")


def unrolled(node: Node, builder: RewriteBuilder) -> list[Value]:
    """Expand a cell into products and element-wise operators, a network into products and its steps.

    float16 networks compute in float32 and round once at the end, so that errors do not grow from step to step.
    """
    narrow = node.outputs[0].data_type == "float16"
    operands = {name: builder.operand(value) for name, value in node.operands.items() if isinstance(value, Value)}
    if narrow:
        operands = {name: builder.cast(operand, "float32") for name, operand in operands.items()}
    if has_steps(node):
        outputs = _in_steps(node, builder, operands)
    else:
        results = NETWORKS[node.operator](builder, **operands, **node.options)
        outputs = results if isinstance(results, list) else [results]
    if narrow:
        outputs = [builder.cast(output, "float16") for output in outputs]
    return [builder.value(output) for output in outputs]


for operator in NETWORKS:
    composite(operator)(unrolled)


def has_steps(node: Node) -> bool:
    """Return whether a node is a network that the kernels of this module take."""
    if node.options.get("steps", 1) == 1:
        return False
    hidden, batch = node.options["hidden_size"], node.operand("input").shape[1]
    cell = cell_of(node)
    is_taken = can_run_in_one_launch(hidden, batch, cell) or (
        len(cell.phases) == 1 and can_run_step_by_step(hidden, batch)
    )
    return is_taken and KernelVariant.RECURRENCE_STEPS.is_on


def cell_of(node: Node) -> Cell:
    """Return the cell of a network, or of its steps."""
    options = node.options
    is_gru = node.operator in (recurrent.gru, GRU_STEPS)
    return Cell(
        options["layout"],
        options["activations"] or (GRU_ACTIVATIONS if is_gru else LSTM_ACTIVATIONS),
        has_extra="extra" in node.operands,
        reset_after=options.get("reset_after", True),
    )


def _in_steps(node: Node, builder: RewriteBuilder, operands: Mapping[str, MLOperand]) -> list[MLOperand]:
    """Return the outputs of a network, by an operator that takes its steps."""
    options = node.options
    steps, batch, features = operands["input"].shape
    directions, rows, hidden = operands["recurrent_weight"].shape
    is_gru = node.operator is recurrent.gru
    bias, recurrent_bias = operands.get("bias"), operands.get("recurrent_bias")
    if not is_gru and bias is not None and recurrent_bias is not None:
        bias = builder.add(bias, recurrent_bias)
    elif not is_gru:
        bias = recurrent_bias if bias is None else bias
    shares = builder.gemm(
        builder.reshape(operands["input"], [steps * batch, features]),
        builder.reshape(operands["weight"], [directions * rows, features]),
        c=None if bias is None else builder.reshape(bias, [directions * rows]),
        b_transpose=True,
    )
    weight = operands["recurrent_weight"]
    beyond = vec4s_of(hidden) * WIDTH - hidden
    if beyond:
        weight = builder.pad(weight, [0, 0, 0], [0, 0, beyond])
    extra = recurrent_bias if is_gru else operands.get("peephole_weight")
    given = {"shares": shares, "weight": weight, "extra": extra, **{name: operands.get(name) for name in STATES}}
    taken = Node(
        GRU_STEPS if is_gru else LSTM_STEPS,
        {name: builder.value(operand) for name, operand in given.items() if operand is not None},
        options,
        tuple(MLOperandDescriptor("float32", output.shape) for output in node.outputs),
        f"in {node.operator.spec_name}{in_brackets(node.label)}",
        node.drawn,
    )
    return [builder.operand(value) for value in taken.results]


def gru_steps() -> list[MLOperandDescriptor]:
    """The steps of a gru whose products of input and weight are known, of 32-bit floats; never drawn by a script."""
    raise NotImplementedError


def lstm_steps() -> list[MLOperandDescriptor]:
    """Emit the kernels of an lstm."""
    raise NotImplementedError


GRU_STEPS: Final = Operator(gru_steps, "gru", {})
LSTM_STEPS: Final = Operator(lstm_steps, "lstm", {})


@kernels(GRU_STEPS)
@kernels(LSTM_STEPS)
def emit_steps(node: Node, lowering: Lowering) -> None:
    options = node.options
    names = STATES[:1] if node.operator is GRU_STEPS else STATES
    network = Recurrence(
        f"{node.operator.spec_name} float32",
        cell_of(node),
        options["steps"],
        node.outputs[0].shape[1],
        options["hidden_size"],
        {"forward": (False,), "backward": (True,), "both": (False, True)}[options["direction"]],
    )
    tiling = OneLaunch.for_network(network, lowering.features)
    operands = {name: lowering.dense(value) for name, value in node.operands.items() if isinstance(value, Value)}
    if tiling is not None and not tiling.is_kept:
        operands["weight"] = _by_vec4(node, lowering)
    last, sequence = node.results[: len(names)], node.results[len(names) :]
    buffers = RecurrenceBuffers(
        operands["shares"],
        operands["weight"],
        operands.get("extra"),
        tuple(operands.get(name) for name in names),
        tuple(lowering.target(value) for value in last),
        lowering.target(sequence[0]) if sequence else None,
    )
    if tiling is None:
        emit_step_by_step(lowering, network, buffers)
    else:
        emit_in_one_launch(lowering, network, buffers, tiling)


def _by_vec4(node: Node, lowering: Lowering) -> Buffer:
    """Return the recurrent weight with the vec4s side by side that are read together."""
    weight = node.value("weight")
    directions, rows, width = weight.descriptor.shape
    shape = directions, width // WIDTH, rows, WIDTH
    return lowering.repacked(weight, Layout(shape, (rows * width, WIDTH, width, 1)))
