"""A loop as one node that contains a single step."""

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
    """Run a loop.

    Args:
        states: the initial states.
        scanned: values of which each step reads a part, along the first axis.
        outer: values that all steps read.
        step: one step. Its inputs are the states, parts of the scanned values, and the outer values; its outputs are
            the states for the next step, and the values to stack.
        steps: the number of steps.
        are_backward: for each scanned, then each stacked value, whether the last part is the first step's.

    Returns:
        The last states, then the stacked values of all steps, with a new first axis.
    """
    return [*loop_outputs(step, steps, len(states))]


def loop_outputs(step: Graph, steps: int, states: int) -> tuple[MLOperandDescriptor, ...]:
    """Return the descriptors of a loop's results, given its number of states."""
    made = [value.descriptor for value in step.outputs.values()]
    stacked = [MLOperandDescriptor(item.data_type, (steps, *item.shape)) for item in made[states:]]
    return (*made[:states], *stacked)


REROLLED_LOOP: Final = Operator(rerolled_loop, "scan", {})
