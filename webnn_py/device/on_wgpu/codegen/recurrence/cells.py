"""What one step makes of the gates' sums, in WGSL, for one element of the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from webnn_py.operators.recurrent import PEEPHOLE_GATES

ACTIVATIONS: Final = {"relu": "maximum({}, 0.0)", "sigmoid": "sigmoid_f32({})", "tanh": "tanh_f32({})"}


@attrs.frozen
class Cell:
    """A cell.

    Its statements read, of each gate, ``x_GATE``, what the gate takes from the input with all biases that are added
    to that, and ``s_GATE``, the product with the recurrent weight; ``hidden`` and ``cell``, the states, which they
    bring forward; and, of a gate that has one, ``e_GATE``: the recurrent bias of a gru, the peephole weight of an lstm.

    Attributes:
        layout: the names of the gates, in their order.
        activations: as the operator says them.
        has_extra: whether gates have such a term.
        reset_after: of a gru.
    """

    layout: str
    activations: Sequence[str]
    has_extra: bool
    reset_after: bool = True

    @property
    def is_gru(self) -> bool:
        """Whether it is a gru's, not an lstm's."""
        return len(self.layout) == 3

    @property
    def states(self) -> tuple[str, ...]:
        """The variables that go from step to step."""
        return ("hidden",) if self.is_gru else ("hidden", "cell")

    @property
    def extras(self) -> dict[str, int]:
        """The gates that have a term of their own, and where it stands in the operand."""
        if not self.has_extra:
            return {}
        return {gate: place for place, gate in enumerate(self.layout if self.is_gru else PEEPHOLE_GATES)}

    @property
    def phases(self) -> tuple[str, ...]:
        """The gates that are summed up together: a gru that resets first sums up the new gate last."""
        return (self.layout,) if self.reset_after else (self.layout[:2], self.layout[2:])

    def statements(self, phase: int = 0) -> list[str]:
        """What follows the sums of a phase; before the last one, ``gated`` is what that is multiplied with."""
        if self.is_gru:
            return self._gru(phase)
        terms = {gate: f"x_{gate} + s_{gate}" for gate in self.layout}
        for gate in self.extras:
            terms[gate] += f" + cell * e_{gate}"
        activate, activate_cell, activate_state = self.activations
        gates = {gate: _call(activate_cell if gate == "g" else activate, term) for gate, term in terms.items()}
        return [
            f"let o = {gates['o']};",
            f"let kept = {gates['f']} * cell;",
            f"cell = kept + {gates['i']} * {gates['g']};",
            f"hidden = o * {_call(activate_state, 'cell')};",
        ]

    def _gru(self, phase: int) -> list[str]:
        activate_both, activate_new = self.activations
        sums = {gate: f"s_{gate} + e_{gate}" if self.has_extra else f"s_{gate}" for gate in self.layout}
        lines = [f"let {gate} = {_call(activate_both, f'x_{gate} + ({sums[gate]})')};" for gate in "zr"]
        new = f"({sums['n']})"
        new = f"let n = {_call(activate_new, f'x_n + r * {new}' if self.reset_after else f'x_n + {new}')};"
        blend = "hidden = z * hidden + n * (1.0 - z);"
        if self.reset_after:
            return [*lines, new, blend]
        if phase == 0:
            return [*lines, "update = z;", "let gated = r * hidden;"]
        return ["let z = update;", new, blend]


def _call(activation: str, argument: str) -> str:
    return ACTIVATIONS[activation].format(argument)
