"""Guards: tensors that tell by NaN where what was written may not mean the graph; their sum is an output more."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import attrs
from onnx import NodeProto, helper


@attrs.frozen
class Guard:
    """A tensor whose sum is NaN where what was written may not mean the operator.

    Attributes:
        tensor: its name.
        is_number: whether it is a number already.
        shape: its shape, if infinite elements tell the same; None if only NaN does.
    """

    tensor: str
    is_number: bool = False
    shape: tuple[int, ...] | None = None


def sum_of(guards: Iterable[Guard], new_name: Callable[[str], str]) -> list[NodeProto]:
    """The nodes that make the sum of all guards, the last of which makes the sum itself.

    Tensors that must be finite are joined before, where their shapes differ in one axis only: a node costs as much as
    thousands of elements.
    """
    nodes: list[NodeProto] = []

    def add(operator: str, inputs: list[str], **attributes: Any) -> str:
        name = new_name("guard")
        nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    numbers: list[str] = []
    summed: list[str] = []
    joined: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for guard in guards:
        if guard.shape is None:
            (numbers if guard.is_number else summed).append(guard.tensor)
        elif guard.is_number:
            numbers.append(add("Sub", [guard.tensor, guard.tensor]))
        else:
            rank, axis = len(guard.shape), min(1, len(guard.shape) - 1)
            joined[(rank, *guard.shape[:axis], *guard.shape[axis + 1 :])].append(guard.tensor)
    for (rank, *_), tensors in joined.items():
        tensor = tensors[0] if len(tensors) == 1 else add("Concat", tensors, axis=min(1, rank - 1))
        summed.append(add("Sub", [tensor, tensor]))
    add("Sum", numbers + [add("ReduceSum", [tensor], keepdims=0) for tensor in summed])
    return nodes
