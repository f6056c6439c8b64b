"""Writing one operator by its rule, or, where there is none, by its decomposition."""

from webnn_py.graph import Node
from webnn_py.onnx_export.body import Body, OnnxTensor, Operands
from webnn_py.onnx_export.registry import RULES
from webnn_py.operators.decompositions import DECOMPOSITIONS


def write(body: Body, node: Node, operands: Operands) -> list[OnnxTensor]:
    """Write an operator into a body.

    Returns:
        The outputs, which have the data types that the node says.

    Raises:
        ValueError: it has neither a rule nor a decomposition.
    """
    name = node.operator.name
    if name in RULES:
        written = RULES[name](body, node, **operands)
    elif name in DECOMPOSITIONS:
        written = body.decomposed(node, operands)
    else:
        raise ValueError(f"save(): {node} has neither a rule of its own for ONNX nor a decomposition")
    outputs = written if isinstance(written, list) else [written]
    for output, descriptor in zip(outputs, node.outputs, strict=True):
        if output.data_type != descriptor.data_type:
            raise RuntimeError(f"the rule of {node} wrote {output.data_type}, not {descriptor.data_type}")
    return outputs
