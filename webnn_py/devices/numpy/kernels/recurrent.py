"""Recurrent networks and their cells on arrays.

A network runs its cell step by step. The input's part of the gates is one matrix product for many time steps; each step
adds the hidden state's part, and computes in place on scratch arrays, for both directions at once. All of it is
float32; float16 is rounded once, at the end. A cell is a network of one step in one direction.

Scratch is bounded, except for float16 weights, which are widened as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import recurrent
from webnn_py.core.operators.recurrent import GRU_ACTIVATIONS, LSTM_ACTIVATIONS, PEEPHOLE_GATES
from webnn_py.devices.numpy.routines.blas import matrix_product, prepared_product
from webnn_py.devices.numpy.routines.float16 import float32
from webnn_py.devices.numpy.routines.tiling import tile_size, tile_starts
from webnn_py.devices.numpy.scratch import allowance, scratch
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run, in_order, kernel, scalar

PROJECTED = 2**18
"""The most elements of the input, and of its part of the gates, that are computed at a time."""

ZERO, ONE = scalar(0, "float32"), scalar(1, "float32")

STATES: Mapping[str, str] = {"hidden_state": "initial_hidden_state", "cell_state": "initial_cell_state"}
"""A network's names of the states of a cell."""


@attrs.frozen
class Sizes:
    """The sizes of a network, or of a cell as a network of one step; see the operators.

    Attributes:
        rows: the rows of the batch that are computed at a time.
        backward: for each direction, whether it runs from the last step to the first.
    """

    steps: int
    batch: int
    features: int
    hidden: int
    rows: int
    backward: tuple[bool, ...]

    @classmethod
    def from_node(cls, node: Node) -> Sizes:
        """Return the sizes of the node."""
        steps, batch, features = (1, *node.operand("input").shape)[-3:]
        direction = node.options.get("direction", "forward")
        backward = {"forward": (False,), "backward": (True,), "both": (False, True)}[direction]
        hidden = node.options["hidden_size"]
        # The gates of one step, the input's part of them, and some states.
        row_bytes = 4 * len(backward) * (2 * node.operand("weight").shape[-2] + 3 * hidden + features)
        return cls(steps, batch, features, hidden, tile_size(batch, allowance(node) / row_bytes), backward)

    @property
    def directions(self) -> int:
        """The number of directions."""
        return len(self.backward)


@attrs.frozen
class Parameters:
    """The weights and biases of a cell, in float32 and gate by gate.

    Attributes:
        weight: [gates, directions, input size, hidden size].
        recurrent_weight: [gates, directions, hidden size, hidden size].
        bias: [gates, directions, 1, hidden size], if given.
        recurrent_bias: [gates, directions, 1, hidden size], if given.
        peepholes: [3, directions, 1, hidden size], if given.
    """

    weight: Array
    recurrent_weight: Array
    bias: Array | None
    recurrent_bias: Array | None
    peepholes: Array | None

    @classmethod
    def from_given(cls, given: Mapping[str, Array], sizes: Sizes) -> Parameters:
        """Return the parameters of a network."""

        def by_gate(name: str) -> Array:
            array = float32(given[name])
            return array.reshape(len(array), -1, sizes.hidden, *array.shape[2:]).swapaxes(0, 1)

        return cls(
            by_gate("weight").swapaxes(2, 3),
            by_gate("recurrent_weight").swapaxes(2, 3),
            by_gate("bias")[:, :, np.newaxis] if "bias" in given else None,
            by_gate("recurrent_bias")[:, :, np.newaxis] if "recurrent_bias" in given else None,
            by_gate("peephole_weight")[:, :, np.newaxis] if "peephole_weight" in given else None,
        )


Step = Callable[[Array], None]
"""Takes the input's part of the gates, and advances the states by one step."""

PrepareStep = Callable[[Parameters, Sequence[Array]], Step]
"""Takes the parameters and the states; returns the step."""


def _work(node: Node) -> float:
    sizes = Sizes.from_node(node)
    weights = node.operand("weight").element_count + node.operand("recurrent_weight").element_count
    return float(sizes.steps * sizes.batch * weights)


class Network:
    """The run of a node's cell over the time steps and the directions.

    Takes a network's arrays, or a cell's, which it treats as those of one step in one direction.
    """

    def __init__(
        self,
        node: Node,
        gate_count: int,
        make_step: Callable[[Node, Sizes], PrepareStep],
        states: Sequence[str],
    ) -> None:
        """Prepare scratch arrays.

        Args:
            node: the network or the cell.
            gate_count: the number of gates.
            make_step: makes the function that prepares steps.
            states: the states before the first step, the hidden state first; as many outputs receive the last ones.
        """
        self._sizes = sizes = Sizes.from_node(node)
        self._is_cell = "steps" not in node.options
        self._names = [STATES.get(name, name) for name in node.operands]
        self._initial = states
        self._states = [scratch((sizes.directions, sizes.rows, sizes.hidden)) for _ in states]
        self._in_float16 = node.outputs[0].data_type == "float16"
        self._prepare_step = make_step(node, sizes)
        rows = sizes.directions * sizes.rows
        most = allowance(node) // 4 - rows * sizes.hidden * (gate_count + 3)
        step_elements = rows * (gate_count * sizes.hidden + sizes.features)
        self._span = min(sizes.steps, max(1, min(PROJECTED, most) // step_elements))
        self._shares = scratch((gate_count, sizes.directions, self._span * sizes.rows, sizes.hidden))

    def kernel(self) -> Kernel:
        """Return the kernel of the node."""
        return self if self._in_float16 else PreparedKernel(self.prepare)

    def __call__(self, *arrays: Array) -> None:
        """Compute; float16 weights are widened at each call."""
        self.prepare(*arrays)()

    def prepare(self, *arrays: Array) -> Run:
        """Return the run of the network, with operands and outputs bound."""
        return in_order(list(self._prepare_each(arrays)))

    def _prepare_each(self, arrays: tuple[Array, ...]) -> Iterator[Run]:
        """Yield runs of some rows of the batch."""
        if self._is_cell:
            arrays = tuple(array[np.newaxis] for array in arrays)
        given = dict(zip(self._names, arrays, strict=False))
        outputs = arrays[len(self._names) :]
        parameters = Parameters.from_given(given, self._sizes)
        step = self._prepare_step(parameters, self._states)
        for start in tile_starts(self._sizes.batch, self._sizes.rows):
            rows = slice(start, start + self._sizes.rows)
            yield self._prepare_rows(given, outputs, parameters, step, rows)

    def _prepare_rows(
        self,
        given: Mapping[str, Array],
        outputs: Sequence[Array],
        parameters: Parameters,
        step: Step,
        rows: slice,
    ) -> Run:
        """Return the run of some rows of the batch."""
        last, sequences = outputs[: len(self._states)], outputs[len(self._states) :]
        begin = [
            partial(np.copyto, state, given[name][:, rows] if name in given else ZERO)
            for state, name in zip(self._states, self._initial, strict=True)
        ]
        end = [
            partial(np.copyto, output[:, rows], state, casting="same_kind")
            for output, state in zip(last, self._states, strict=True)
        ]
        spans = list(self._project(given["input"][:, rows], parameters))

        def run() -> None:
            for copy in begin:
                copy()
            steps = 0
            for project, shares in spans:
                project()
                for row in range(0, shares.shape[2], self._sizes.rows):
                    step(shares[:, :, row : row + self._sizes.rows])
                    for sequence in sequences:
                        self._keep(sequence, steps, rows)
                    steps += 1
            for copy in end:
                copy()

        return run

    def _keep(self, sequence: Array, step: int, rows: slice) -> None:
        """Copy the hidden states after a step into the sequence, at the place of the step's input."""
        for direction, hidden in enumerate(self._states[0]):
            time = self._sizes.steps - 1 - step if self._sizes.backward[direction] else step
            np.copyto(sequence[time, direction, rows], hidden, casting="same_kind")

    def _project(self, input: Array, parameters: Parameters) -> Iterator[tuple[Run, Array]]:
        """Yield runs computing the input's part of the gates for some steps, and its arrays; in reverse if backward."""
        steps, rows = self._sizes.steps, self._sizes.rows
        for start in range(0, steps, self._span):
            count = min(self._span, steps - start)
            shares = self._shares[:, :, : count * rows]
            runs = []
            for direction, is_backward in enumerate(self._sizes.backward):
                x = input[steps - start - count : steps - start][::-1] if is_backward else input[start : start + count]
                here = slice(direction, direction + 1)
                runs.append(self._prepare_share(x, parameters.weight[:, here], shares[:, here]))
            if parameters.bias is not None:
                runs.append(partial(np.add, shares, parameters.bias, shares))
            yield in_order(runs), shares

    def _prepare_share(self, x: Array, weights: Array, share: Array) -> Run:
        """Return the products of some steps: of a float32 copy in their order, unless they are in this form already."""
        shape = (1, -1, self._sizes.features)
        if x.dtype == np.float32 and x.flags.c_contiguous:
            return prepared_product(x.reshape(shape), weights, share)

        return lambda: matrix_product(float32(x).reshape(shape), weights, share)


@kernel(recurrent.gru, work=_work)
@kernel(recurrent.gru_cell, work=_work)
def gru(node: Node) -> Kernel:
    return Network(node, 3, _gru_step, ["initial_hidden_state"]).kernel()


@kernel(recurrent.lstm, work=_work)
@kernel(recurrent.lstm_cell, work=_work)
def lstm(node: Node) -> Kernel:
    return Network(node, 4, _lstm_step, ["initial_hidden_state", "initial_cell_state"]).kernel()


def _gru_step(node: Node, sizes: Sizes) -> PrepareStep:
    layout = node.options["layout"]
    activate_both, activate_new = node.options["activations"] or GRU_ACTIVATIONS
    gates = scratch((3, sizes.directions, sizes.rows, sizes.hidden))
    update, reset = gates[layout.index("z")], gates[layout.index("r")]
    both, new = gates[:2], gates[2]  # the new gate comes last in either layout
    kept = scratch(update.shape)

    def prepare(parameters: Parameters, states: Sequence[Array]) -> Step:
        hidden, weight, bias = states[0], parameters.recurrent_weight, parameters.recurrent_bias
        if node.options["reset_after"]:
            begin = _sums(hidden, weight, bias, gates)
            middle: list[Run] = [partial(np.multiply, new, reset, new)]
        else:
            begin = _sums(hidden, weight[:2], None if bias is None else bias[:2], both)
            middle = [
                partial(np.multiply, hidden, reset, kept),
                *_sums(kept, weight[2:], None if bias is None else bias[2], gates[2:]),
            ]
        middle = [*ACTIVATIONS[activate_both](both), *middle]
        end: list[Run] = [
            *ACTIVATIONS[activate_new](new),
            partial(np.multiply, hidden, update, hidden),
            partial(np.subtract, ONE, update, update),
            partial(np.multiply, new, update, new),
            partial(np.add, hidden, new, hidden),
        ]

        def step(share: Array) -> None:
            for run in begin:
                run()
            np.add(both, share[:2], both)
            for run in middle:
                run()
            np.add(new, share[2], new)
            for run in end:
                run()

        return step

    return prepare


def _lstm_step(node: Node, sizes: Sizes) -> PrepareStep:
    layout = node.options["layout"]
    gate_activation, cell_activation, state_activation = node.options["activations"] or LSTM_ACTIVATIONS
    gates = scratch((4, sizes.directions, sizes.rows, sizes.hidden))
    by_name = {name: gates[index] for index, name in enumerate(layout)}
    names = [cell_activation if name == "g" else gate_activation for name in layout]
    product = scratch(gates.shape[1:])

    def prepare(parameters: Parameters, states: Sequence[Array]) -> Step:
        hidden, cell = states
        begin = _sums(hidden, parameters.recurrent_weight, parameters.recurrent_bias, gates)
        end: list[Run] = []
        if parameters.peepholes is not None:
            for name, peephole in zip(PEEPHOLE_GATES, parameters.peepholes, strict=True):
                gate = by_name[name]
                end += [partial(np.multiply, cell, peephole, product), partial(np.add, gate, product, gate)]
        end += _activated(gates, names)
        end += [
            partial(np.multiply, cell, by_name["f"], cell),
            partial(np.multiply, by_name["i"], by_name["g"], product),
            partial(np.add, cell, product, cell),
            partial(np.copyto, hidden, cell),
            *ACTIVATIONS[state_activation](hidden),
            partial(np.multiply, hidden, by_name["o"], hidden),
        ]

        def step(share: Array) -> None:
            for run in begin:
                run()
            np.add(gates, share, gates)
            for run in end:
                run()

        return step

    return prepare


def _sums(hidden: Array, weights: Array, bias: Array | None, gates: Array) -> list[Run]:
    """Return the sums that gates take from the hidden state."""
    runs = [prepared_product(hidden, weights, gates)]
    if bias is not None:
        runs.append(partial(np.add, gates, bias, gates))
    return runs


def _activated(gates: Array, names: Sequence[str]) -> list[Run]:
    """Return the activations of gates, computed at once for adjacent gates with the same activation."""
    runs: list[Run] = []
    first = 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[first]:
            runs += ACTIVATIONS[names[first]](gates[first:end])
            first = end
    return runs


def _sigmoid(x: Array) -> list[Run]:
    # The exponential may overflow to infinity, with the correct reciprocal 0.
    return [partial(np.negative, x, x), partial(np.exp, x, x), partial(np.add, x, ONE, x), partial(np.reciprocal, x, x)]


ACTIVATIONS: Mapping[str, Callable[[Array], list[Run]]] = {
    "relu": lambda x: [partial(np.maximum, x, ZERO, out=x)],
    "sigmoid": _sigmoid,
    "tanh": lambda x: [partial(np.tanh, x, x)],
}
"""The activations, computed in place."""
