"""Descriptions of compiled graphs for pictures as JSON and back, so that they can be saved with a graph."""

from typing import Any

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph_pictures.description import DrawnOperator, DrawnValue, GraphDescription
from webnn_py.graph_pictures.plan import CompiledPlan, PlannedKernel
from webnn_py.operators.composites import operator_of


def to_json(graph: GraphDescription, plan: CompiledPlan | None) -> Any:
    """Return a description and a plan as JSON can say them."""
    return {
        "values": [
            [value.kind, value.descriptor.data_type, list(value.descriptor.shape), value.name, value.source, value.port]
            for value in graph.values
        ],
        "operators": [
            [item.operator.name, item.label, item.place, item.operands, dict(item.options), item.results]
            for item in graph.operators
        ],
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "plan": plan
        and [
            [[kernel.name, kernel.operators] for kernel in plan.kernels],
            plan.folded,
            plan.intermediate_bytes,
            plan.constant_bytes,
        ],
    }


def from_json(written: Any) -> tuple[GraphDescription, CompiledPlan | None]:
    """Read what :func:`to_json` wrote."""
    values = tuple(
        DrawnValue(MLOperandDescriptor(data_type, shape), kind, name, source, port)
        for kind, data_type, shape, name, source, port in written["values"]
    )
    operators = tuple(
        DrawnOperator(operator_of(name), label, place, tuple(map(tuple, operands)), _options(options), tuple(results))
        for name, label, place, operands, options, results in written["operators"]
    )
    outputs = tuple((name, index) for name, index in written["outputs"])
    graph = GraphDescription(values, operators, tuple(written["inputs"]), outputs)
    if written["plan"] is None:
        return graph, None
    kernels, folded, intermediate_bytes, constant_bytes = written["plan"]
    planned = tuple(PlannedKernel(name, tuple(places)) for name, places in kernels)
    return graph, CompiledPlan(planned, tuple(folded), intermediate_bytes, constant_bytes)


def _options(written: dict[str, Any]) -> dict[str, Any]:
    """Options as conversions leave them: JSON has no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
