"""Recurrent networks, expanded into other operators: all time steps share one product of the input and the weight."""

from __future__ import annotations

from typing import Any

from webnn_py.device.on_wgpu.records.table import composite
from webnn_py.graph import Node, Value
from webnn_py.operators import recurrent, unrolling
from webnn_py.operators.declaration import Operator
from webnn_py.rewriting import RewriteBuilder

NETWORKS: dict[Operator[..., Any], Any] = {
    recurrent.gru: unrolling.gru,
    recurrent.gru_cell: unrolling.gru_cell,
    recurrent.lstm: unrolling.lstm,
    recurrent.lstm_cell: unrolling.lstm_cell,
}


def unrolled(node: Node, builder: RewriteBuilder) -> list[Value]:
    """Expand a network into its cells, a cell into products and element-wise operators.

    float16 networks compute in float32 and round once at the end, so that errors do not grow from step to step.
    """
    narrow = node.outputs[0].data_type == "float16"
    operands = {name: builder.operand(value) for name, value in node.operands.items() if isinstance(value, Value)}
    if narrow:
        operands = {name: builder.cast(operand, "float32") for name, operand in operands.items()}
    results = NETWORKS[node.operator](builder, **operands, **node.options)
    outputs = results if isinstance(results, list) else [results]
    if narrow:
        outputs = [builder.cast(output, "float16") for output in outputs]
    return [builder.value(output) for output in outputs]


for operator in NETWORKS:
    composite(operator)(unrolled)
