"""Steps of a loop as one node, which has a step in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Graph
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand


def rerolled_loop(
    states: Sequence[MLOperand],
    scanned: Sequence[MLOperand],
    outer: Sequence[MLOperand],
    *,
    step: Graph,
    steps: int,
    are_backward: Sequence[bool],
) -> list[MLOperandDescriptor]:
    """A loop.

    Args:
        states: what the first step begins with.
        scanned: of which each step reads a part, along the first axis.
        outer: what all steps read.
        step: one step. Its inputs are the states, parts of what is scanned, and what all read; its outputs are the
            states for the next step, and what is stacked.
        steps: how many there are.
        are_backward: for each of what is scanned, then of what is stacked, whether the last part is the first step's.

    Returns:
        The last states, and of all steps what is stacked, along an axis more, the first.
    """
    return [*loop_outputs(step, steps, len(states))]


def loop_outputs(step: Graph, steps: int, states: int) -> tuple[MLOperandDescriptor, ...]:
    """What a loop gives, of as many states."""
    made = [value.descriptor for value in step.outputs.values()]
    stacked = [MLOperandDescriptor(item.data_type, (steps, *item.shape)) for item in made[states:]]
    return (*made[:states], *stacked)


REROLLED_LOOP: Final = Operator(rerolled_loop, "scan", {})
