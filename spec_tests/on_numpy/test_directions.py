"""Bidirectional recurrent networks, computed at once, beside one forward network for each direction."""

import numpy as np
import pytest

from spec_tests.on_numpy.drawing import Drawing
from webnn_py.devices.numpy.kernels import recurrent
from webnn_py.devices.numpy.table import run_node

rng = np.random.default_rng(9)

STEPS, BATCH, FEATURES, HIDDEN = 7, 3, 5, 4
GATES = {"gru": 3, "lstm": 4}


def network(operator, direction, arrays):
    """Return a network's last states, and the hidden state after each step."""
    b = Drawing()
    operands = {name: b.known(array) for name, array in arrays.items()}
    options = {"steps": STEPS, "hidden_size": HIDDEN, "direction": direction, "return_sequence": True}
    node = b.value(getattr(b, operator)(**operands, **options)[0]).node
    return run_node(node, [arrays[name] for name in node.operands])


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("projected", [2**18, 1], ids=["all steps at a time", "step by step"])
def test_both_directions_at_once_give_what_each_gives_forward(monkeypatch, operator, data_type, projected):
    monkeypatch.setattr(recurrent, "PROJECTED", projected)
    shared = {"input": rng.normal(size=(STEPS, BATCH, FEATURES)).astype(data_type)}
    gates = GATES[operator] * HIDDEN
    shapes = {
        "weight": (gates, FEATURES),
        "recurrent_weight": (gates, HIDDEN),
        "bias": (gates,),
        "recurrent_bias": (gates,),
        "initial_hidden_state": (BATCH, HIDDEN),
    }
    if operator == "lstm":
        shapes |= {"peephole_weight": (3 * HIDDEN,), "initial_cell_state": (BATCH, HIDDEN)}
    own = {name: rng.normal(size=(2, *shape)).astype(data_type) / 2 for name, shape in shapes.items()}
    together = network(operator, "both", shared | own)
    for index, direction in enumerate(("forward", "backward")):
        step = -1 if direction == "backward" else 1
        arrays = {name: array[index : index + 1] for name, array in own.items()} | {"input": shared["input"][::step]}
        alone = network(operator, "forward", arrays)
        *states, sequence = (array[index] for array in (*together[:-1], together[-1][::step].swapaxes(0, 1)))
        tolerance = 1e-6 if data_type == "float32" else 2e-3
        for got, expected in zip([*states, sequence], [*(a[0] for a in alone[:-1]), alone[-1][:, 0]], strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance, err_msg=direction)
        np.testing.assert_array_equal(sequence[-1], states[0], err_msg=f"the last step {direction}")
