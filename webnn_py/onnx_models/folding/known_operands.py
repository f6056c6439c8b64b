"""Operands that depend on constants only, which the numpy device computes while the graph is built."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from webnn_py.core.device.compiling.expansion import expand
from webnn_py.core.graph import Constant, Graph, Value
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.devices.numpy import kernels  # noqa: F401 - enters every kernel into the table
from webnn_py.devices.numpy.backend import CAPABILITIES
from webnn_py.devices.numpy.table import entry_of, run_node
from webnn_py.extensions.int4 import has_four_bits, in_bytes
from webnn_py.onnx_models.limits import STEPS_PER_SECOND, Expenses

SECONDS_PER_OPERATION: Final = 1e-9


def known_value(value: Value, expenses: Expenses) -> NDArray[Any] | None:
    """Return the values of an operand; None if they depend on an input.

    Raises:
        Refused: computing them costs more than is left.
    """
    graph = Graph.reaching({"value": value})
    if graph.inputs:
        return None
    graph = expand(spelled_out(graph), CAPABILITIES)
    value = graph.outputs["value"]
    if has_four_bits(graph, CAPABILITIES):
        graph = in_bytes(graph, CAPABILITIES)
        value = graph.outputs["value"]
    arrays: dict[Value, NDArray[Any]] = {}
    for node in graph.nodes:
        operands = [_constant(item) if isinstance(item, Constant) else arrays[item] for item in node.inputs]
        expenses.check_steps(int(entry_of(node).work(node) * SECONDS_PER_OPERATION * STEPS_PER_SECOND))
        expenses.add_bytes(sum(descriptor.byte_length for descriptor in node.outputs))
        with expenses.timed():
            arrays.update(zip(node.results, run_node(node, operands), strict=True))
    return _constant(value) if isinstance(value, Constant) else arrays[value]


def _constant(value: Constant) -> NDArray[Any]:
    if not isinstance(value.data, np.ndarray):
        raise TypeError(f"a constant of {type(value.data).__name__}")
    return value.data
