"""Folding: nodes whose inputs are all static are computed while building, by ONNX's own reference implementation."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from webnn_py.onnx_models.conversion_context import StaticValue
from webnn_py.operators.rules import Refused

NOT_CONSTANT: Final = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators that give something else each time."""


def fold(node: NodeProto, inputs: Sequence[StaticValue | None], opsets: Mapping[str, int]) -> list[StaticValue | None]:
    """Compute a node.

    Returns:
        Its outputs; None for those without a name.

    Raises:
        Refused: the reference implementation cannot compute it.
    """
    # Of a graph, unlike of a node, the implementation honours the opset.
    used = [ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name]
    graph = helper.make_graph([node], "folded", used, [ValueInfoProto(name=name) for name in node.output if name])
    named = {name: value for name, value in zip(node.input, inputs, strict=True) if value is not None}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(graph, opsets=dict(opsets)).run(None, named)
    except Exception as error:
        raise Refused(f"it cannot be computed while building: {error or type(error).__name__}") from error
    if not all(isinstance(result, (np.ndarray, np.generic)) for result in results):
        raise Refused("it gives something other than tensors, which is not supported")
    given = iter(results)
    return [np.asarray(next(given)) if name else None for name in node.output]
