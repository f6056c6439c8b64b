"""Folding: nodes whose inputs are all static are computed while building, by ONNX's own reference implementation."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.folding.costs import COSTS, FoldedNode, FoldingCost
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.problems import shortened
from webnn_py.onnx_models.reading.tensors import tensor_array
from webnn_py.operators.rules import Refused

CONSTANT: Final = "Constant"
FOLDED: Final = frozenset({CONSTANT, *COSTS})
"""The operators that are computed while building."""

NOT_NUMBERS: Final = "OSTU"
"""Numpy's kinds of data types that are texts or objects: a sum of texts is as long as both."""

MOST_KEPT: Final = 1024
"""Of so many bytes nodes may be whose evaluators are kept, and with what they are given and give, whose results are."""

UNCHANGED: Final = frozenset({"Identity"})
"""Of those, the ones that give their input."""


class NotComputed(Refused):
    """The reference implementation cannot compute a node; drawing it may be possible."""


def is_folded(operator: str) -> bool:
    """Whether an operator is computed while building, when all its inputs are known."""
    return operator in FOLDED


def fold(
    node: NodeProto, inputs: Sequence[StaticValue | None], opsets: Mapping[str, int], expenses: Expenses
) -> list[StaticValue | None]:
    """Compute a node.

    Returns:
        Its outputs; None for those without a name.

    Raises:
        NotComputed: the reference implementation cannot compute it.
        Refused: it costs more than is left, or is of something other than numbers.
    """
    known = [value for value in inputs if value is not None]
    if any(value.dtype.kind in NOT_NUMBERS for value in known):
        raise Refused("one of its inputs is of strings, which are not supported")
    if any(item.name == "broadcast" for item in node.attribute):
        raise NotComputed("the attributes axis and broadcast of early opsets cannot be honoured while building")
    try:
        if node.op_type == CONSTANT:
            results: Sequence[object] = [_constant(node)]
        elif node.op_type in UNCHANGED:
            results = inputs
        else:
            cost = _checked_cost(node, inputs, expenses)
            with expenses.timed():
                results = _computed(node, inputs, opsets, cost)
    except Refused:
        raise
    except Exception as error:  # the implementation raises whatever numpy raises
        worded = shortened(str(error) or type(error).__name__)
        raise NotComputed(f"it cannot be computed while building: {worded}") from error
    arrays = [np.asarray(result) for result in results if isinstance(result, (np.ndarray, np.generic))]
    if len(arrays) < len(results) or any(array.dtype.kind in NOT_NUMBERS for array in arrays):
        raise Refused("it gives something other than tensors of numbers, which is not supported")
    expenses.add_bytes(sum([item.nbytes for item in arrays if not any(np.may_share_memory(item, x) for x in known)]))
    names = list(node.output)
    given = dict(zip(filter(None, names), arrays, strict=False))
    if given.keys() < set(filter(None, names)):
        raise Refused(f"it gives {len(arrays)} outputs; {len(names)} are named")
    return [given[name] if name else None for name in names]


def _checked_cost(node: NodeProto, inputs: Sequence[StaticValue | None], expenses: Expenses) -> FoldingCost:
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    cost = COSTS[node.op_type](FoldedNode(inputs, attributes, len(node.output)))
    expenses.check_bytes(cost.bytes)
    expenses.check_steps(cost.steps)
    return cost


def _constant(node: NodeProto) -> StaticValue:
    """What a Constant says in the one attribute that it has."""
    if len(node.attribute) != 1:
        raise Refused(f"it has {len(node.attribute)} attributes; it must have one, its value")
    (attribute,) = node.attribute
    value = helper.get_attribute_value(attribute)
    match attribute.name:
        case "value" if attribute.HasField("t"):
            return tensor_array(attribute.t)
        case "value_int" | "value_ints":
            return np.array(value, np.int64)
        case "value_float" | "value_floats":
            return np.array(value, np.float32)
    raise Refused(f"its attribute {attribute.name} is not supported")


def _computed(
    node: NodeProto, inputs: Sequence[StaticValue | None], opsets: Mapping[str, int], cost: FoldingCost
) -> Sequence[object]:
    # Without the names of its own, so that nodes that compute the same have one evaluator.
    plain = NodeProto(
        op_type=node.op_type,
        input=[f"i{index}" if value is not None else "" for index, value in enumerate(inputs)],
        output=[f"o{index}" if name else "" for index, name in enumerate(node.output)],
        attribute=node.attribute,
    )
    encoded, own_opsets = plain.SerializeToString(), tuple(opsets.items())
    size = len(encoded) + cost.bytes + sum(value.nbytes for value in inputs if value is not None)
    if size <= MOST_KEPT:
        contents = [None if value is None else (value.dtype, value.shape, value.tobytes()) for value in inputs]
        return _small_results(encoded, own_opsets, tuple(contents))
    return _results(encoded, own_opsets, inputs)


@lru_cache(1024)
def _small_results(
    encoded: bytes,
    opsets: tuple[tuple[str, int], ...],
    contents: tuple[tuple[np.dtype[Any], tuple[int, ...], bytes] | None, ...],
) -> Sequence[object]:
    """Compute a node of small inputs, as those that compute shapes are: many of a model are the same."""
    inputs = [None if item is None else np.frombuffer(item[2], item[0]).reshape(item[1]) for item in contents]
    results = _results(encoded, opsets, inputs)
    for result in results:
        if isinstance(result, np.ndarray):
            result.flags.writeable = False
    return results


def _results(
    encoded: bytes, opsets: tuple[tuple[str, int], ...], inputs: Sequence[StaticValue | None]
) -> Sequence[object]:
    named = {f"i{index}": value for index, value in enumerate(inputs) if value is not None}
    make = _evaluator if len(encoded) <= MOST_KEPT else _evaluator.__wrapped__
    with np.errstate(all="ignore"):
        return list(make(encoded, opsets).run(None, named))


@lru_cache(256)
def _evaluator(encoded: bytes, opsets: tuple[tuple[str, int], ...]) -> ReferenceEvaluator:
    """Return what computes a node: making it takes longer than it takes to compute."""
    node = NodeProto.FromString(encoded)
    # Of a graph, unlike of a node, the implementation honours the opset.
    used = [ValueInfoProto(name=name) for name in node.input if name]
    graph = helper.make_graph([node], "folded", used, [ValueInfoProto(name=name) for name in node.output if name])
    return ReferenceEvaluator(graph, opsets=dict(opsets))
