"""The operators that the device claims: all except those that onnxruntime computes with other results; its loops."""

from collections.abc import Mapping
from typing import Any, Final

from webnn_py.descriptors import DATA_TYPES, MLOperandDataType
from webnn_py.device.backend import Capabilities
from webnn_py.graph import Graph, Input
from webnn_py.operators.composites import COMPOSITES
from webnn_py.operators.declaration import Operator
from webnn_py.operators.matrix import gemm, matmul

NOT_CLAIMED: Final[Mapping[str, str]] = {
    "elu": "It computes exp(x) - 1, which cancels near zero.",
    "instance_normalization": "It adds the bias less the scaled mean to the product, which cancels.",
    "softsign": "Of an infinity it computes Infinity / Infinity.",
}
"""The operators that are expanded, by Python name, each with the fault of onnxruntime's own."""


FEWEST_STEPS: Final = 8

FEWEST_NODES: Final = 200
"""Over all steps: loops of fewer nodes run up to a tenth longer than their steps."""

PLAIN: Final = frozenset(
    [
        *("abs", "add", "clamp", "concat", "div", "exp", "gather", "gemm", "matmul", "max", "min", "mul", "neg"),
        *("relu", "reshape", "sigmoid", "slice", "split", "sqrt", "sub", "tanh", "transpose"),
    ]
)
"""The operators of a loop's step, whose lowering rules have no guards; a guard would be within the step."""


def _supports(operator: Operator[..., Any]) -> tuple[MLOperandDataType, ...]:
    return () if operator.name in NOT_CLAIMED else DATA_TYPES


def runs_loop(step: Graph, steps: int) -> bool:
    """Return whether so many steps, one of which is given, are a loop: in each, a matrix that stays is multiplied."""
    nodes = step.nodes
    return (
        steps >= FEWEST_STEPS
        and steps * len(nodes) >= FEWEST_NODES
        and all(node.operator.name in PLAIN for node in nodes)
        and any(node.operator in {matmul, gemm} and isinstance(node.inputs[1], Input) for node in nodes)
    )


CAPABILITIES: Final = Capabilities(
    _supports, composites=tuple(item.operator for item in COMPOSITES.values()), runs_loop=runs_loop
)
