"""Recurrent networks and their cells on arrays.

A network is its cell, step after step. What the gates take from the input is one matrix product for many time steps;
each step adds what they take from the hidden state, and computes in place on scratch arrays, for both directions at
once. All of it is float32; float16 is rounded once, at the end. A cell is a network of one step in one direction.

Scratch is bounded, but for weights in float16 that more than one step needs: they are widened once, as a whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from webnn_py.device.on_numpy.routines.blas import matrix_product
from webnn_py.device.on_numpy.routines.blas_threads import UNSPREAD
from webnn_py.device.on_numpy.routines.float16 import in_float32, widen
from webnn_py.device.on_numpy.routines.tiling import tile_size, tile_starts
from webnn_py.device.on_numpy.scratch import allowance, scratch
from webnn_py.device.on_numpy.table import Array, Kernel, kernel, scalar
from webnn_py.graph import Node
from webnn_py.operators import recurrent
from webnn_py.operators.recurrent import GRU_ACTIVATIONS, LSTM_ACTIVATIONS, PEEPHOLE_GATES

PROJECTED = 2**18
"""The most elements of the input, and of the gates' share of it, that are taken at a time."""

WIDENED = 1 / 4
"""How much of the scratch is for float16 weights that are widened as they are needed."""

ZERO, ONE = scalar(0, "float32"), scalar(1, "float32")

STATES: Mapping[str, str] = {"hidden_state": "initial_hidden_state", "cell_state": "initial_cell_state"}
"""What a network calls the states that a cell takes."""


@attrs.frozen
class Sizes:
    """The sizes of a network, or of a cell as a network of one step; see the operators.

    Attributes:
        rows: the rows of the batch that are computed at a time.
        backward: for each direction, whether it takes the steps from the last to the first.
        together: the directions that are computed at a time: one where its weights are widened.
    """

    steps: int
    batch: int
    features: int
    hidden: int
    rows: int
    backward: tuple[bool, ...]
    together: int

    @classmethod
    def of(cls, node: Node) -> Sizes:
        """The sizes of the node."""
        steps, batch, features = (1, *node.operand("input").shape)[-3:]
        direction = node.options.get("direction", "forward")
        backward = {"forward": (False,), "backward": (True,), "both": (False, True)}[direction]
        hidden = node.options["hidden_size"]
        # The gates of one step, what they take from the input, and some states.
        together = 1 if node.outputs[0].data_type == "float16" else len(backward)
        row_bytes = 4 * together * (2 * node.operand("weight").shape[-2] + 3 * hidden + features)
        rows = tile_size(batch, (1 - WIDENED) * allowance(node) / row_bytes)
        return cls(steps, batch, features, hidden, rows, backward, together)


@attrs.frozen
class Parameters:
    """What a cell multiplies and adds in some directions, in float32 and gate by gate.

    Attributes:
        weight: [gates, directions, input size, hidden size]; float16 where it is needed only once.
        recurrent_weight: [gates, directions, hidden size, hidden size]; likewise.
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
    def of(cls, given: Mapping[str, Array], directions: slice, sizes: Sizes) -> Parameters:
        """The parameters of some directions of a network."""

        def by_gate(name: str) -> Array:
            array: Array = given[name][directions]
            if array.ndim == 2 or sizes.steps > 1:
                array = in_float32(array)
            return array.reshape(len(array), -1, sizes.hidden, *array.shape[2:]).swapaxes(0, 1)

        return cls(
            by_gate("weight").swapaxes(2, 3),
            by_gate("recurrent_weight").swapaxes(2, 3),
            by_gate("bias")[:, :, np.newaxis] if "bias" in given else None,
            by_gate("recurrent_bias")[:, :, np.newaxis] if "recurrent_bias" in given else None,
            by_gate("peephole_weight")[:, :, np.newaxis] if "peephole_weight" in given else None,
        )


Step = Callable[[Array, Parameters, Sequence[Array]], None]
"""Takes the gates' share of the input, the parameters, and the states, which it brings forward by one step."""


Multiply = Callable[[Array, Array, Array], None]
"""Takes rows for each direction, the weights of some gates, and where to put each gate's products."""


def _work(node: Node) -> float:
    sizes = Sizes.of(node)
    weights = node.operand("weight").element_count + node.operand("recurrent_weight").element_count
    return float(sizes.steps * sizes.batch * weights)


class Network:
    """Runs the cell of a node over the time steps and the directions.

    Called with a network's arrays, or with a cell's, which it takes for those of one step in one direction.
    """

    def __init__(
        self,
        node: Node,
        gate_count: int,
        make_step: Callable[[Node, Sizes, Multiply], Step],
        states: Sequence[str],
    ) -> None:
        """Prepare scratch arrays.

        Args:
            node: the network or the cell.
            gate_count: the number of gates.
            make_step: makes what brings the cell forward.
            states: the states before the first step, the hidden state first; as many outputs receive the last ones.
        """
        self._sizes = sizes = Sizes.of(node)
        self._is_cell = "steps" not in node.options
        self._names = [STATES.get(name, name) for name in node.operands]
        self._initial = states
        self._states = [scratch((sizes.together, sizes.rows, sizes.hidden)) for _ in states]
        is_widened = node.outputs[0].data_type == "float16" and sizes.steps == 1
        self._widened = scratch(int(WIDENED * allowance(node)) // 4 if is_widened else 0)
        is_small = not is_widened and sizes.rows * sizes.hidden**2 <= UNSPREAD
        self._step = make_step(node, sizes, multiply_alone if is_small else partial(multiply, self._widened))
        step_elements = sizes.together * sizes.rows * (gate_count * sizes.hidden + sizes.features)
        most = int((1 - WIDENED) * allowance(node)) // 4 - sizes.together * sizes.rows * sizes.hidden * (gate_count + 3)
        self._span = min(sizes.steps, max(1, min(PROJECTED, most) // step_elements))
        self._shares = scratch((gate_count, sizes.together, self._span * sizes.rows, sizes.hidden))

    def __call__(self, *arrays: Array) -> None:
        """Run the network on the operands that are there, into the outputs."""
        if self._is_cell:
            arrays = tuple(array[np.newaxis] for array in arrays)
        given = dict(zip(self._names, arrays, strict=False))
        outputs = arrays[len(self._names) :]
        for first in range(0, len(self._sizes.backward), self._sizes.together):
            directions = slice(first, first + self._sizes.together)
            parameters = Parameters.of(given, directions, self._sizes)
            for start in tile_starts(self._sizes.batch, self._sizes.rows):
                self._run(given, outputs, parameters, directions, slice(start, start + self._sizes.rows))

    def _run(
        self,
        given: Mapping[str, Array],
        outputs: Sequence[Array],
        parameters: Parameters,
        directions: slice,
        rows: slice,
    ) -> None:
        """Run some rows of the batch in some directions."""
        last, sequences = outputs[: len(self._states)], outputs[len(self._states) :]
        for state, name in zip(self._states, self._initial, strict=True):
            np.copyto(state, given[name][directions, rows] if name in given else 0)
        for step, share in enumerate(self._project(given["input"][:, rows], parameters, directions)):
            self._step(share, parameters, self._states)
            for sequence in sequences:
                for direction, hidden in enumerate(self._states[0], directions.start):
                    time = self._sizes.steps - 1 - step if self._sizes.backward[direction] else step
                    np.copyto(sequence[time, direction, rows], hidden, casting="same_kind")
        for output, state in zip(last, self._states, strict=True):
            np.copyto(output[directions, rows], state, casting="same_kind")

    def _project(self, input: Array, parameters: Parameters, directions: slice) -> Iterator[Array]:
        """The gates' share of the input, step by step; the first step backward takes the last of the input."""
        steps, rows = self._sizes.steps, self._sizes.rows
        for start in range(0, steps, self._span):
            count = min(self._span, steps - start)
            shares = self._shares[:, :, : count * rows]
            for direction, is_backward in enumerate(self._sizes.backward[directions]):
                # A copy in the order of the steps, unless they are in it.
                x = input[steps - start - count : steps - start][::-1] if is_backward else input[start : start + count]
                here = slice(direction, direction + 1)
                flat = in_float32(x).reshape(1, -1, self._sizes.features)
                multiply(self._widened, flat, parameters.weight[:, here], shares[:, here])
            if parameters.bias is not None:
                np.add(shares, parameters.bias, out=shares)
            for row in range(0, count * rows, rows):
                yield shares[:, :, row : row + rows]


def multiply_alone(x: Array, weights: Array, products: Array) -> None:
    """Multiply float32 so little that it is never spread over threads."""
    np.matmul(x, weights, out=products)


def multiply(widened: Array, x: Array, weights: Array, products: Array) -> None:
    """Multiply by the weights of each gate, widening float16 bit by bit."""
    if weights.dtype == np.float32:
        matrix_product(x, weights, products)
        return
    gates, directions, inputs, outputs = weights.shape
    step = max(1, len(widened) // inputs)
    for gate, direction, start in itertools.product(range(gates), range(directions), range(0, outputs, step)):
        part = weights[gate, direction, :, start : start + step].T
        memory = widened[: part.size] if inputs <= len(widened) else np.empty(part.size, np.float32)
        wide = memory.reshape(part.shape)
        widen(part, wide)
        matrix_product(x[direction], wide.T, products[gate, direction, :, start : start + step])


@kernel(recurrent.gru, work=_work)
@kernel(recurrent.gru_cell, work=_work)
def gru(node: Node) -> Kernel:
    return Network(node, 3, _gru_step, ["initial_hidden_state"])


@kernel(recurrent.lstm, work=_work)
@kernel(recurrent.lstm_cell, work=_work)
def lstm(node: Node) -> Kernel:
    return Network(node, 4, _lstm_step, ["initial_hidden_state", "initial_cell_state"])


def _gru_step(node: Node, sizes: Sizes, multiply: Multiply) -> Step:
    layout = node.options["layout"]
    activate_both, activate_new = (ACTIVATIONS[name] for name in node.options["activations"] or GRU_ACTIVATIONS)
    gates = scratch((3, sizes.together, sizes.rows, sizes.hidden))
    update, reset = gates[layout.index("z")], gates[layout.index("r")]
    both, new = gates[:2], gates[2]  # the new gate comes last in either layout
    kept = scratch(update.shape)

    def reset_after(share: Array, parameters: Parameters, states: Sequence[Array]) -> None:
        hidden = states[0]
        multiply(hidden, parameters.recurrent_weight, gates)
        if parameters.recurrent_bias is not None:
            np.add(gates, parameters.recurrent_bias, out=gates)
        np.add(both, share[:2], out=both)
        activate_both(both)
        np.multiply(new, reset, out=new)
        blend(share, hidden)

    def reset_before(share: Array, parameters: Parameters, states: Sequence[Array]) -> None:
        hidden, weight, bias = states[0], parameters.recurrent_weight, parameters.recurrent_bias
        multiply(hidden, weight[:2], both)
        if bias is not None:
            np.add(both, bias[:2], out=both)
        np.add(both, share[:2], out=both)
        activate_both(both)
        multiply(np.multiply(hidden, reset, out=kept), weight[2:], gates[2:])
        if bias is not None:
            np.add(new, bias[2], out=new)
        blend(share, hidden)

    def blend(share: Array, hidden: Array) -> None:
        np.add(new, share[2], out=new)
        activate_new(new)
        np.multiply(hidden, update, out=hidden)
        np.multiply(new, np.subtract(ONE, update, out=update), out=new)
        np.add(hidden, new, out=hidden)

    return reset_after if node.options["reset_after"] else reset_before


def _lstm_step(node: Node, sizes: Sizes, multiply: Multiply) -> Step:
    layout = node.options["layout"]
    gate_activation, cell_activation, state_activation = node.options["activations"] or LSTM_ACTIVATIONS
    gates = scratch((4, sizes.together, sizes.rows, sizes.hidden))
    by_name = {name: gates[index] for index, name in enumerate(layout)}
    activated = _runs(gates, [cell_activation if name == "g" else gate_activation for name in layout])
    activate_state = ACTIVATIONS[state_activation]
    product = scratch(gates.shape[1:])

    def step(share: Array, parameters: Parameters, states: Sequence[Array]) -> None:
        hidden, cell = states
        multiply(hidden, parameters.recurrent_weight, gates)
        if parameters.recurrent_bias is not None:
            np.add(gates, parameters.recurrent_bias, out=gates)
        np.add(gates, share, out=gates)
        if parameters.peepholes is not None:
            for name, peephole in zip(PEEPHOLE_GATES, parameters.peepholes, strict=True):
                np.add(by_name[name], np.multiply(cell, peephole, out=product), out=by_name[name])
        for activate, run in activated:
            activate(run)
        np.multiply(cell, by_name["f"], out=cell)
        np.add(cell, np.multiply(by_name["i"], by_name["g"], out=product), out=cell)
        np.copyto(hidden, cell)
        activate_state(hidden)
        np.multiply(hidden, by_name["o"], out=hidden)

    return step


def _runs(gates: Array, names: Sequence[str]) -> list[tuple[Callable[[Array], object], Array]]:
    """The activations, each with the gates one behind the other that share it."""
    runs, first = [], 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[first]:
            runs.append((ACTIVATIONS[names[first]], gates[first:end]))
            first = end
    return runs


def _relu(x: Array) -> None:
    np.maximum(x, ZERO, out=x)


def _sigmoid(x: Array) -> None:
    np.exp(np.negative(x, out=x), out=x)  # may overflow to infinity, whose reciprocal is right: 0
    np.reciprocal(np.add(x, ONE, out=x), out=x)


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


ACTIVATIONS: Mapping[str, Callable[[Array], object]] = {"relu": _relu, "sigmoid": _sigmoid, "tanh": _tanh}
"""The activations, in place."""
