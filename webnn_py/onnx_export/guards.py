"""Guards: tensors that show where what was written may not mean the graph; one number for all is NaN then."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any

import attrs
from onnx import TensorProto

from webnn_py.onnx_export.nodes import OnnxNode, attributes_of


class Must(Enum):
    """A condition on the elements of a tensor, without which what was written does not mean the operator."""

    BE_NUMBERS = auto()
    """None is NaN."""

    BE_FINITE = auto()
    """None is NaN or infinite."""

    BE_ABOVE_ZERO = auto()
    """A number that is 0 or more is more."""

    BE_NONE_OR_SOME = auto()
    """Each number of a list that is 0 or more is 0, or so much that its reciprocal is finite: at least 2⁻¹²⁷."""


@attrs.frozen
class Guard:
    """A tensor that shows whether what was written means the operator.

    Attributes:
        tensor: its name.
        must: what it must be.
        is_number: whether it is of no dimensions.
        shape: its shape, if it may be joined with others.
    """

    tensor: str
    must: Must = Must.BE_NUMBERS
    is_number: bool = False
    shape: tuple[int, ...] | None = None

    @property
    def is_looked_at(self) -> bool:
        """Return whether its elements are looked at, and not their sum."""
        return self.is_number or self.must is Must.BE_NONE_OR_SOME


def number_of(guards: Iterable[Guard], new_name: Callable[[str], str]) -> list[OnnxNode]:
    """Return the nodes that make a number which is NaN if any guard is not as it must be; it is that of the last node.

    Tensors are joined before they are summed, where their shapes differ in one axis only: a node costs as much as
    thousands of elements.
    """
    nodes: list[OnnxNode] = []

    def add(operator: str, inputs: list[str], **attributes: Any) -> str:
        name = new_name("guard")
        nodes.append(OnnxNode(operator, inputs, [name], attributes_of(attributes), name))
        return name

    def total(tensor: str) -> str:
        return add("ReduceSum", [tensor], keepdims=0)

    numbers: dict[Must, list[str]] = {must: [] for must in Must}
    joined: defaultdict[tuple[Must, int, tuple[int, ...]], list[str]] = defaultdict(list)
    for guard in guards:
        if guard.shape:
            axis = min(1, len(guard.shape) - 1)
            joined[guard.must, axis, guard.shape[:axis] + guard.shape[axis + 1 :]].append(guard.tensor)
        else:
            numbers[guard.must].append(guard.tensor if guard.is_looked_at else total(guard.tensor))
    for (must, axis, _), tensors in joined.items():
        condition, whole = _joined_condition(must, tensors, axis, add)
        numbers[condition].append(total(whole))
    if amounts := numbers[Must.BE_NONE_OR_SOME]:
        numbers[Must.BE_ABOVE_ZERO].append(_least_amount(amounts, add))
    finite, sums = numbers[Must.BE_FINITE], numbers[Must.BE_NUMBERS]
    if numbers[Must.BE_ABOVE_ZERO]:
        finite.append(add("Reciprocal", [add("Min", numbers[Must.BE_ABOVE_ZERO])]))
    if finite:
        whole = finite[0] if len(finite) == 1 else add("Sum", finite)
        sums.append(add("Sub", [whole, whole]))
    if not nodes or sums != [nodes[-1].name]:  # else that is the sum already
        add("Sum", sums)
    return nodes


def _joined_condition(must: Must, tensors: list[str], axis: int, add: Callable[..., str]) -> tuple[Must, str]:
    """Return tensors joined along an axis, and the condition on them, such that their sum shows whether it holds."""
    whole = _whole(tensors, axis, add)
    return (Must.BE_FINITE, add("Reciprocal", [whole])) if must is Must.BE_ABOVE_ZERO else (must, whole)


def _whole(tensors: list[str], axis: int, add: Callable[..., str]) -> str:
    """Return tensors joined along an axis."""
    return tensors[0] if len(tensors) == 1 else add("Concat", tensors, axis=axis)


def _least_amount(amounts: list[str], add: Callable[..., str]) -> str:
    """Return the least number of several lists of numbers that are not negative, with 1 in place of 0."""
    listed = _whole(amounts, 0, add)
    is_none = add("Cast", [add("Not", [add("Cast", [listed], to=TensorProto.BOOL)])], to=TensorProto.FLOAT)
    return add("ReduceMin", [add("Add", [listed, is_none])], keepdims=0)
