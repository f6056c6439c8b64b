"""Write one operator by its rule, or, where there is none, by its decomposition."""

from collections.abc import Mapping
from typing import Any, Final

from webnn_py.core.graph import Node
from webnn_py.devices.composites.fused import ONNX_NAMES
from webnn_py.onnx_export.body import Body, OnnxTensor, Operands, Write
from webnn_py.onnx_export.registry import RULES
from webnn_py.onnx_export.table import Rule


def by(rules: Mapping[str, Rule]) -> Write:
    """Return a function that writes an operator into a body by its rule among these, by Python name.

    It returns the outputs, which have the data types that the node says, and raises ``ValueError`` for an operator that
    has neither a rule nor a decomposition.
    """

    def write(body: Body, node: Node, operands: Operands) -> list[OnnxTensor]:
        rule = rules.get(node.operator.name)
        if rule is not None:
            written = rule(body, node, **operands)
        elif node.operator in ONNX_NAMES:
            tensors: Any = operands.values()  # no sequences: rules draw these with operands alone
            written = body.node(ONNX_NAMES[node.operator], *tensors)
        elif node.operator.decomposition is not None:
            written = body.decomposed(node, operands)
        else:
            raise ValueError(f"save(): {node} has neither a rule of its own for ONNX nor a decomposition")
        outputs = written if isinstance(written, list) else [written]
        for output, descriptor in zip(outputs, node.outputs, strict=True):
            if output.data_type != descriptor.data_type:
                raise RuntimeError(f"the rule of {node} wrote {output.data_type}, not {descriptor.data_type}")
        return outputs

    return write


write: Final = by(RULES)
"""By the rules of what is saved."""
