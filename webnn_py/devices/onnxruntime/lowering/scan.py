"""The lowering of a loop to ONNX's Scan."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto

from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.operators.declaration import of_operands
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.model_export import value_info
from webnn_py.onnx_export.nodes import Within


def loop(
    body: Body, node: Node, states: Sequence[OnnxTensor], scanned: Sequence[OnnxTensor], outer: Sequence[OnnxTensor]
) -> list[OnnxTensor]:
    """Write Scan with a subgraph for the step, whose operators are lowered by the rules of the surrounding body."""
    step: Graph = node.options["step"]
    descriptors = [value.descriptor for value in step.inputs.values()]
    # A captured value that is an output of the model may be renamed outside; an Identity of it keeps its name.
    around = [tensor if tensor.name in body.constants else body.node("Identity", tensor) for tensor in outer]
    parts = [body.unwritten(item) for item in descriptors[: len(states) + len(scanned)]]
    given = zip(step.inputs.values(), [*parts, *around], strict=True)
    tensors: dict[Value, OnnxTensor] = {
        value: OnnxTensor(tensor.name, tensor.data_type, value.descriptor) for value, tensor in given
    }
    with body.apart() as drafts:
        for inner in step.nodes:
            written = body.write(body, inner, of_operands(inner.operands, tensors.__getitem__))
            for value, tensor in zip(inner.results, written, strict=True):
                tensors[value] = OnnxTensor(tensor.name, tensor.data_type, value.descriptor)
        made = [body.node("Identity", tensors[value]) for value in step.outputs.values()]
    names = [tensor.name for tensor in parts], [tensor.name for tensor in made]
    types = descriptors[: len(parts)], [value.descriptor for value in step.outputs.values()]
    inputs, outputs = (
        [value_info(*pair) for pair in zip(some, their, strict=True)] for some, their in zip(names, types, strict=True)
    )
    graph = GraphProto(name="step", input=inputs, output=outputs)
    for index, draft in enumerate(drafts):
        draft.write(graph.node.add(), f"{draft.name}_{index}")
    own = set(names[0]).union(*[draft.outputs for draft in drafts], ("",))
    reads = frozenset().union(*[draft.inputs for draft in drafts]) - own
    within = Within(graph, reads, frozenset([draft.operator for draft in drafts]))
    ways = list(node.options["directions"])
    return body.nodes_outputs(
        "Scan",
        [*states, *scanned],
        [item.data_type for item in node.outputs],
        within=within,
        num_scan_inputs=len(scanned),
        scan_input_directions=ways[: len(scanned)],
        scan_output_directions=ways[len(scanned) :] or None,
    )
