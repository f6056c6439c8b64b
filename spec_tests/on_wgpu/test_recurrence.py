"""Recurrent networks in each way that they run: the weight kept, read in every step, and a launch for each step."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder
from webnn_py.devices.wgpu.codegen.recurrence import in_one_launch

WAYS = {"kept": (2**16, 2**16), "read": (2**16, 0), "step by step": (0, 0)}
"""The most elements of a weight that a workgroup reads, and that it keeps."""

STEPS, BATCH, FEATURES = 4, 9, 3


@pytest.fixture
def take(monkeypatch):
    """Has networks run in one of the ways."""

    def of(way):
        for name, most in zip(("READ", "KEPT"), WAYS[way], strict=True):
            monkeypatch.setattr(in_one_launch, name, most)

    return of


def weights(gates, hidden, directions):
    rng = np.random.default_rng(gates)
    shapes = {
        "weight": (directions, gates * hidden, FEATURES),
        "recurrent_weight": (directions, gates * hidden, hidden),
        "bias": (directions, gates * hidden),
        "recurrent_bias": (directions, gates * hidden),
        "initial_hidden_state": (directions, BATCH, hidden),
    }
    if gates == 4:
        shapes["peephole_weight"] = (directions, 3 * hidden)
        shapes["initial_cell_state"] = (directions, BATCH, hidden)
    return {name: rng.standard_normal(shape).astype(np.float32) / 2 for name, shape in shapes.items()}


def network(builder, x, kind, *, hidden_size, **options):
    gates = 3 if kind == "gru" else 4
    directions = 2 if options.get("direction") == "both" else 1
    given = {name: builder.constant(array) for name, array in weights(gates, hidden_size, directions).items()}
    return getattr(builder, kind)(x, steps=x.shape[0], hidden_size=hidden_size, **given, **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("way", "kind", "options"),
    [
        ("kept", "gru", {"hidden_size": 6, "direction": "both", "return_sequence": True}),
        ("kept", "lstm", {"hidden_size": 36}),
        ("read", "gru", {"hidden_size": 37, "direction": "backward", "reset_after": False, "return_sequence": True}),
        ("read", "lstm", {"hidden_size": 5, "direction": "both", "layout": "ifgo"}),
        ("step by step", "gru", {"hidden_size": 6, "direction": "both", "return_sequence": True}),
        ("step by step", "lstm", {"hidden_size": 7, "direction": "backward"}),
    ],
)
async def test_a_network(ml, take, way, kind, options):
    """Its last output: the hidden state of every step, or the last state."""
    take(way)
    x = np.random.default_rng(1).standard_normal((STEPS, BATCH, FEATURES)).astype(np.float32)
    await check_both(ml, [x], lambda b, operand: network(b, operand, kind, **options)[-1], rtol=3e-6)


@pytest.mark.parametrize("way", WAYS)
async def test_neither_texts_nor_bind_groups_grow_with_the_steps(gpu, take, compiled, way, monkeypatch):
    take(way)
    groups = noted(monkeypatch, gpu.device.backend.device, "create_bind_group")
    made = []
    for steps in (10, 300):
        builder = MLGraphBuilder(gpu)
        x = builder.input("x", data_type="float32", shape=[steps, BATCH, FEATURES])
        await builder.build({"y": network(builder, x, "gru", hidden_size=6)[0]})
        made.append((len(compiled[-1][2]), len(groups)))
        groups.clear()
    assert made[0] == made[1]
    assert made[0][0] <= 4
