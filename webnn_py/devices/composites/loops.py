"""Loops: as one node that contains a single step, or as all steps one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Graph
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import ANY, MAX_RANK, LimitsRow, limit
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.inner_graphs import drawn_on

LIMITS: Final[LimitsRow] = {
    "states": limit(ANY),
    "scanned": limit(ANY, rank=(1, MAX_RANK)),
    "outer": limit(ANY),
    "outputs": limit(ANY),
}


def loop(
    states: Sequence[MLOperand],
    scanned: Sequence[MLOperand],
    outer: Sequence[MLOperand],
    *,
    step: Any,
    steps: int,
    directions: Sequence[int],
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Run a loop.

    Args:
        states: the initial states.
        scanned: values of which each step reads a part, along the first axis.
        outer: values that all steps read.
        step: the graph of one step. Its inputs are the states, parts of the scanned values, and the outer values; its
            outputs are the states for the next step, and the values to stack.
        steps: the number of steps.
        directions: for each scanned, then each stacked value, 1 if the last part is the first step's, else 0.
        label: the label of the node.

    Returns:
        The last states, then the stacked values of all steps, with a new first axis.
    """
    return [*loop_outputs(step, steps, len(states))]


def loop_outputs(step: Any, steps: int, states: int) -> tuple[MLOperandDescriptor, ...]:
    """Return the descriptors of a loop's results, given its number of states."""
    made = [value.descriptor for value in step.outputs.values()]
    stacked = [MLOperandDescriptor(item.data_type, (steps, *item.shape)) for item in made[states:]]
    return (*made[:states], *stacked)


@runtime_checkable
class RunsLoops(Protocol):
    """A backend that runs some loops faster as one node than as all their steps."""

    def runs_loop(self, step: Graph, steps: int) -> bool:
        """Return whether a number of steps, of which one is given, had better be a loop."""


def unrolled(
    builder: Any,
    states: Sequence[MLOperand],
    scanned: Sequence[MLOperand],
    outer: Sequence[MLOperand],
    *,
    step: Any,
    steps: int,
    directions: Sequence[int],
) -> list[MLOperand]:
    """Draw :func:`loop` as all its steps."""
    count = len(states)
    stacks: list[list[MLOperand]] = [[] for _ in directions[len(scanned) :]]
    sequences = [builder.split(operand, steps, axis=0) for operand in scanned]
    ordered = [rows[::-1] if is_backward else rows for rows, is_backward in zip(sequences, directions, strict=False)]
    for rows in zip(*ordered, strict=True):
        parts = [builder.reshape(row, [*row.shape[1:]]) for row in rows]
        made = drawn_on(builder, step, zip(step.inputs.values(), [*states, *parts, *outer], strict=True))
        states = made[:count]
        for stack, value in zip(stacks, made[count:], strict=True):
            stack.append(builder.reshape(value, [1, *value.shape]))
    ways = zip(stacks, directions[len(scanned) :], strict=True)
    return [*states, *[builder.concat(stack[::-1] if is_backward else stack, 0) for stack, is_backward in ways]]


LOOP: Final = Composite(loop, "loop", LIMITS, unrolled)
