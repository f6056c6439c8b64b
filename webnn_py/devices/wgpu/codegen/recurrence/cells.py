"""Recurrent cells: the WGSL statements that compute one element of the state from the gates' sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from webnn_py.core.operators.recurrent import PEEPHOLE_GATES

ACTIVATIONS: Final = {"relu": "maximum({}, 0.0)", "sigmoid": "sigmoid_f32({})", "tanh": "tanh_f32({})"}


@attrs.frozen
class Cell:
    """A GRU or LSTM cell.

    For each gate, its statements read ``x_GATE``, the input projection with its biases; ``s_GATE``, the product of the
    recurrent weight and the state; and, for some gates, ``e_GATE``: the recurrent bias of a GRU, or the peephole weight
    of an LSTM. They update the states ``hidden`` and ``cell``.

    Attributes:
        layout: the names of the gates, in their order.
        activations: the names of the activations.
        has_extra: whether gates have a term ``e_GATE``.
        reset_after: whether a GRU applies the reset gate after the product.
    """

    layout: str
    activations: Sequence[str]
    has_extra: bool
    reset_after: bool = True

    @property
    def is_gru(self) -> bool:
        """True if it is a GRU cell, not an LSTM cell."""
        return len(self.layout) == 3

    @property
    def states(self) -> tuple[str, ...]:
        """The variables that are carried from step to step."""
        return ("hidden",) if self.is_gru else ("hidden", "cell")

    @property
    def extras(self) -> dict[str, int]:
        """The gates that have a term ``e_GATE``, with its index in the operand."""
        if not self.has_extra:
            return {}
        return {gate: place for place, gate in enumerate(self.layout if self.is_gru else PEEPHOLE_GATES)}

    @property
    def phases(self) -> tuple[str, ...]:
        """The gates that are summed together: a GRU that resets before the product sums the new gate last."""
        return (self.layout,) if self.reset_after else (self.layout[:2], self.layout[2:])

    def statements(self, phase: int = 0) -> list[str]:
        """Return the statements after the sums of a phase; the first of two names ``gated``, the second's state."""
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
