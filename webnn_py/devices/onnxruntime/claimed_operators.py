"""The operators that the device claims: all except those that onnxruntime computes with other results; its loops."""

from collections.abc import Callable, Container, Mapping
from typing import Any, Final

from webnn_py.core.descriptors import DATA_TYPES, MLOperandDataType
from webnn_py.core.device.backend import Capabilities
from webnn_py.core.graph import Graph, Input
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.matrix import gemm, matmul
from webnn_py.devices.composites.block_quantized import MATMUL_NBITS
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE, DYNAMIC_QUANTIZE_LSTM
from webnn_py.devices.composites.loops import LOOP
from webnn_py.devices.composites.tree_ensemble import TREE_ENSEMBLE

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


def runs_loop(step: Graph, steps: int) -> bool:
    """Return whether so many steps, one of which is given, are a loop: in each, a matrix that stays is multiplied."""
    nodes = step.nodes
    return (
        steps >= FEWEST_STEPS
        and steps * len(nodes) >= FEWEST_NODES
        and all(node.operator.name in PLAIN for node in nodes)
        and any(node.operator in {matmul, gemm} and isinstance(node.inputs[1], Input) for node in nodes)
    )


def claims_without(
    names: Container[str], composites: Container[Operator[..., Any]]
) -> Callable[[Operator[..., Any]], tuple[MLOperandDataType, ...]]:
    """Return a claim of all operators but those of these Python names, and of these composites."""

    def supports(operator: Operator[..., Any]) -> tuple[MLOperandDataType, ...]:
        is_claimed = operator in composites if isinstance(operator, Composite) else operator.name not in names
        return DATA_TYPES if is_claimed else ()

    return supports


ON_CPU: Final = (
    DYNAMIC_QUANTIZE,
    DYNAMIC_QUANTIZE_LSTM,
    GROUP_QUERY_ATTENTION,
    LOOP,
    MATMUL_NBITS,
    TREE_ENSEMBLE,
)
"""The composites that it takes whole; its own GatherBlockQuantized fails where an index is out of range."""

CAPABILITIES: Final = Capabilities(claims_without(NOT_CLAIMED, ON_CPU))
"""The abilities on the CPU, and on providers of which nothing is known."""

ELSEWHERE: Final = (DYNAMIC_QUANTIZE, DYNAMIC_QUANTIZE_LSTM, TREE_ENSEMBLE)
"""The composites on other providers, which have no kernels for the rest, or none for all of their arguments."""
