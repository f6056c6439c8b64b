"""Folding: nodes whose inputs are all static are computed while building, by ONNX's own reference implementation."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from onnx import NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.folding.costs import COSTS, FoldedNode, FoldingCost
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.problems import shortened
from webnn_py.onnx_models.reading.tensors import tensor_array

CONSTANT: Final = "Constant"
FOLDED: Final = frozenset({CONSTANT, *COSTS})
"""The operators that are computed while building, when all their inputs are known."""

NOT_NUMBERS: Final = frozenset("OSTU")
"""Numpy's kinds of data types that are texts or objects: a sum of texts is as long as both."""

MOST_KEPT: Final = 1024
"""The most bytes of a node whose evaluator is kept, and, with inputs and outputs, of one whose results are kept."""

UNCHANGED: Final = frozenset({"Identity"})
"""Of those, the ones that give their input."""


class NotComputed(Refused):
    """The reference implementation cannot compute a node; drawing it may be possible."""


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
    if not NOT_NUMBERS.isdisjoint([value.dtype.kind for value in known]):
        raise Refused("one of its inputs is of strings, which are not supported")
    operator = node.op_type
    kept = None
    try:
        if operator == CONSTANT:
            results: Sequence[object] = [_constant(node)]
        elif operator in UNCHANGED:
            results = inputs
        else:
            plain = _plain_node(node, inputs)
            kept = _kept_for(plain, inputs, opsets)
            if kept is not None and kept.results:
                return kept.spent_again(expenses)
            if "broadcast" in plain.attributes:
                raise NotComputed("the attributes axis and broadcast of early opsets cannot be honoured while building")
            cost = COSTS[operator](FoldedNode(inputs, plain.attributes, len(plain.outputs)))
            expenses.check_bytes(cost.bytes)
            expenses.check_steps(cost.steps)
            kept = None if kept is None or cost.bytes > MOST_KEPT else kept
            # What is kept must not share memory with a model.
            given = inputs if kept is None else [None if value is None else value.copy() for value in inputs]
            with expenses.timed():
                results = _results(plain.encoded, tuple(opsets.items()), given)
    except Refused:
        raise
    except Exception as error:  # the implementation raises all that numpy raises
        worded = shortened(str(error) or type(error).__name__)
        raise NotComputed(f"it cannot be computed while building: {worded}") from error
    outputs, spent = _outputs(node, results, known)
    expenses.add_bytes(spent)
    if kept is not None:
        kept.keep(outputs, cost, spent)
    return outputs


def _outputs(
    node: NodeProto, results: Sequence[object], known: Sequence[StaticValue]
) -> tuple[list[StaticValue | None], int]:
    """Return the outputs of a node, None for those without a name, and how many bytes are not those of its inputs."""
    arrays = [np.asarray(result) for result in results if isinstance(result, (np.ndarray, np.generic))]
    if len(arrays) < len(results) or not NOT_NUMBERS.isdisjoint([array.dtype.kind for array in arrays]):
        raise Refused("it gives something other than tensors of numbers, which is not supported")
    spent = sum([item.nbytes for item in arrays if not known or not any(np.may_share_memory(item, x) for x in known)])
    names = node.output[:]
    if len(names) == len(arrays) == 1 and names[0]:  # as of nearly all nodes
        return [*arrays], spent
    named = [name for name in names if name]
    given = dict(zip(named, arrays, strict=False))
    if len(given) < len({*named}):
        raise Refused(f"it gives {len(arrays)} outputs; {len(names)} are named")
    return [given[name] if name else None for name in names], spent


def _constant(node: NodeProto) -> StaticValue:
    """Return the value of a Constant, which has one attribute."""
    attributes = node.attribute[:]
    if len(attributes) != 1:
        raise Refused(f"it has {len(attributes)} attributes; it must have one, its value")
    (attribute,) = attributes
    match attribute.name:
        case "value" if attribute.HasField("t"):
            return tensor_array(attribute.t)
        case "value_int" | "value_ints":
            return np.array(helper.get_attribute_value(attribute), np.int64)
        case "value_float" | "value_floats":
            return np.array(helper.get_attribute_value(attribute), np.float32)
    raise Refused(f"its attribute {attribute.name} is not supported")


class _PlainNode(NamedTuple):
    """A node without the names of its own, so that nodes that compute the same have one evaluator."""

    encoded: bytes
    attributes: Mapping[str, Any]
    outputs: Sequence[str]


def _plain_node(node: NodeProto, inputs: Sequence[StaticValue | None]) -> _PlainNode:
    encoded = node.SerializeToString()
    make = _decoded if len(encoded) <= MOST_KEPT else _decoded.__wrapped__
    return make(encoded, tuple([value is not None for value in inputs]))


@lru_cache(1024)
def _decoded(encoded: bytes, present: tuple[bool, ...]) -> _PlainNode:
    """Read a node with the inputs that are present; in a loop's body it is the same at each iteration."""
    node = NodeProto.FromString(encoded)
    outputs = [f"o{index}" if name else "" for index, name in enumerate(node.output)]
    plain = NodeProto(
        op_type=node.op_type,
        input=[f"i{index}" if is_there else "" for index, is_there in enumerate(present)],
        output=outputs,
        attribute=node.attribute,
    )
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    return _PlainNode(plain.SerializeToString(), attributes, outputs)


@attrs.define(eq=False)
class _Kept:
    """The results of a node of small inputs, as those that compute shapes are: many of a model are the same.

    Attributes:
        results: the results; none before they were computed.
        cost: the most that computing them may take.
        bytes: those of the results.
    """

    results: Sequence[StaticValue | None] = ()
    cost: FoldingCost = attrs.field(factory=lambda: FoldingCost(0))
    bytes: int = 0

    def keep(self, results: Sequence[StaticValue | None], cost: FoldingCost, spent: int) -> None:
        for result in results:
            if result is not None:
                result.flags.writeable = False
        self.cost, self.bytes, self.results = cost, spent, results

    def spent_again(self, expenses: Expenses) -> list[StaticValue | None]:
        """Return the results, and spend what computing them again would cost.

        Raises:
            Refused: so much is not left.
        """
        expenses.check_bytes(self.cost.bytes)
        expenses.check_steps(self.cost.steps)
        expenses.add_bytes(self.bytes)
        return list(self.results)


def _kept_for(plain: _PlainNode, inputs: Sequence[StaticValue | None], opsets: Mapping[str, int]) -> _Kept | None:
    """Return the place for the results of a node; None where there is too much to keep."""
    if len(plain.encoded) + sum([value.nbytes for value in inputs if value is not None]) > MOST_KEPT:
        return None
    contents = [None if value is None else (value.dtype, value.shape, value.tobytes()) for value in inputs]
    return _kept(plain.encoded, tuple(opsets.items()), tuple(contents))


@lru_cache(1024)
def _kept(
    encoded: bytes,
    opsets: tuple[tuple[str, int], ...],
    contents: tuple[tuple[np.dtype[Any], tuple[int, ...], bytes] | None, ...],
) -> _Kept:
    return _Kept()


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
