"""Tensors without elements: WebNN has none, but such a result is static, even if its inputs are not."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from onnx import NodeProto

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import StaticValue, Value
from webnn_py.onnx_models.folding.evaluation import FOLDED, fold
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.reading.functions import operator_name

KEEP_ELEMENTS: Final = frozenset({"Concat"})
"""Operators whose result has elements although one of their inputs has none."""


def empty_results(
    node: NodeProto,
    values: Sequence[Value | None],
    opsets: Mapping[str, int],
    expenses: Expenses,
) -> Sequence[StaticValue | None] | None:
    """Return the results of a node with an empty input, if they are empty, too: then no element of the others matters.

    Returns:
        None if there is no empty input, or something else comes out.
    """
    has_empty = 0 in [value.size for value in values if isinstance(value, np.ndarray)]
    if not has_empty or node.op_type in KEEP_ELEMENTS or operator_name(node) not in FOLDED:
        return None
    stand_ins = [
        np.broadcast_to(np.zeros((), value.data_type), value.shape) if isinstance(value, MLOperand) else value
        for value in values
    ]
    try:
        results = fold(node, stand_ins, opsets, expenses)
    except Refused:
        return None
    return results if all(result is None or result.size == 0 for result in results) else None
