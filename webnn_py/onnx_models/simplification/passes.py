"""Simplification of an ONNX model: inputs frozen, shapes fixed, known values computed, unused nodes removed.

The model computes the same, and every other node stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from onnx import ModelProto, NodeProto

from webnn_py.devices.rewriting.passes import GraphPass, PassContext, PassManager
from webnn_py.devices.rewriting.report import PassReport
from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.limits import Expenses, ModelLimits
from webnn_py.onnx_models.reading.model_file import ReadModel
from webnn_py.onnx_models.reading.node_order import live
from webnn_py.onnx_models.simplification.known_values import KnownValues

LOWEST_IR_VERSION: Final = 4
"""Since this version of the file format initializers need not be inputs."""


@attrs.frozen
class SimplifiedModel:
    """A simplified model.

    Attributes:
        proto: the model.
        intermediate_bytes: the bytes of the values that its nodes compute, when most of them are needed at once; None
            where a shape is not known.
        unsized: the first value whose shape is not known; "" where all are.
        passes: what each pass did, in each round.
    """

    proto: ModelProto
    intermediate_bytes: int | None
    unsized: str
    passes: Sequence[PassReport] = ()


@attrs.frozen(eq=False)
class ModelNodes:
    """The nodes of a model while it is simplified.

    Attributes:
        nodes: the nodes, in an order in which they can run.
        values: what is known of the model's values.
        outputs: the names of the model's outputs.
    """

    nodes: Sequence[NodeProto]
    values: KnownValues
    outputs: Sequence[str]


def compute_known_values(model: ModelNodes, context: PassContext) -> ModelNodes:
    """Compute nodes whose inputs are known, take the branch of an If whose condition is, and remove Identity nodes."""
    nodes = model.values.remaining(model.nodes, context.applied)
    return attrs.evolve(model, nodes=nodes) if context.applied else model


def remove_unused_nodes(model: ModelNodes, _context: PassContext) -> ModelNodes:
    """Remove nodes that no output needs."""
    nodes = live(model.nodes, model.outputs).nodes
    return model if len(nodes) == len(model.nodes) else attrs.evolve(model, nodes=nodes)


PASSES: Final = PassManager(
    GraphPass(name="known-values", run=compute_known_values),
    GraphPass(name="unused-nodes", run=remove_unused_nodes, after=("known-values",)),
)


def simplify(
    model: ReadModel,
    shapes: Mapping[str, Sequence[int | str]],
    values: Mapping[str, StaticValue],
    limits: ModelLimits | None = None,
) -> SimplifiedModel:
    """Return a simpler model of the same results; the one given is not changed.

    Args:
        model: a model whose weights have not been read by a conversion.
        shapes: the shapes of inputs, by name; they fit what the model declares. A string is a dimension that stays
            open, "?" one without a name.
        values: for inputs that become constants; of the inputs' types and shapes.
        limits: the limits on computing values.
    """
    expenses = Expenses(ModelLimits() if limits is None else limits, model.size)
    simplified = _simplified(model.proto, shapes, values, expenses)
    while True:
        # The next round can compute with weights that only removed branches had in common.
        again = _simplified(simplified.proto, {}, {}, expenses)
        if len(again.proto.graph.node) >= len(simplified.proto.graph.node):
            return simplified
        simplified = attrs.evolve(again, passes=(*simplified.passes, *again.passes))


def _simplified(
    model: ModelProto,
    shapes: Mapping[str, Sequence[int | str]],
    values: Mapping[str, StaticValue],
    expenses: Expenses,
) -> SimplifiedModel:
    """Run the passes once."""
    outputs = [item.name for item in model.graph.output]
    known = KnownValues(model, shapes, values, expenses)
    ordered = live(model.graph.node, outputs).nodes
    found, reports = PASSES.run(ModelNodes(ordered, known, outputs), PassContext())
    nodes = [*found.nodes, *known.constants_of(outputs)]
    proto = ModelProto(**{field.name: value for field, value in model.ListFields() if field.name != "graph"})
    proto.ir_version = max(proto.ir_version, LOWEST_IR_VERSION)
    proto.graph.CopyFrom(known.graph_of(nodes))
    return SimplifiedModel(proto, known.intermediate_bytes(nodes, outputs), known.unsized(nodes), reports)
