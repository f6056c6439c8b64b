import attrs
import numpy as np
import pytest

from spec_tests.onnx_models.single_node import Random, assert_same, compared, node, refused, run, run_onnxruntime

STEPS, BATCH, FEATURES, HIDDEN = 5, 2, 3, 4
floats = Random(11, -0.7, 0.7).floats
X = floats(STEPS, BATCH, FEATURES)
BATCH_FIRST = X.swapaxes(0, 1).copy()
VERSIONS = [7, 14, 22]
LENGTHS, OWN = np.full(BATCH, STEPS, np.int32), np.array([3, 5], np.int32)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
EACH_DIRECTION = (("forward", 1), ("reverse", 1), ("bidirectional", 2))
BOTH = {"direction": "bidirectional"}


def network(operator, versions, *more, x=X, parts=3, **options):
    """Return cases of a network with the first ``parts`` of weights, recurrent weights and biases, and more inputs."""
    directions, size = 2 if options.get("direction") == "bidirectional" else 1, GATES[operator] * HIDDEN
    weights = floats(directions, size, FEATURES), floats(directions, size, HIDDEN), floats(directions, 2 * size)
    inputs = *weights[:parts], *[None] * (3 - parts if more else 0), *more
    return node(operator, versions, x, *inputs, hidden_size=HIDDEN, outputs=3 if operator == "LSTM" else 2, **options)


def state(directions=1):
    return floats(directions, BATCH, HIDDEN)


test_lstm = compared(
    network("LSTM", VERSIONS, parts=2),
    network("LSTM", VERSIONS, known=(1, 2, 3), wanted=(1,)),
    network("LSTM", VERSIONS, LENGTHS, state(), state(), known=(1, 2, 3, 4), direction="reverse"),
    network(
        "LSTM", VERSIONS, None, state(2), state(2), np.zeros([2, 3 * HIDDEN], np.float32), known=(1, 2, 3, 7),
        wanted=(0, 2), **BOTH,
    ),
    network("LSTM", 14, activations=["Sigmoid", "Relu", "Tanh"]),
)  # fmt: skip


test_gru = compared(
    *(
        network(
            "GRU", VERSIONS, LENGTHS, state(count), known=(1, 2, 3, 4), direction=way, linear_before_reset=is_before
        )
        for way, count in EACH_DIRECTION
        for is_before in (0, 1)
    ),
    network("GRU", VERSIONS, parts=2, wanted=(1,)),
    network("GRU", 14, activations=["Sigmoid", "Relu"] * 2, **BOTH),
)


test_lstm_with_peepholes_or_own_lengths = compared(
    network("LSTM", VERSIONS, None, None, None, floats(1, 3 * HIDDEN)),
    network("LSTM", 14, OWN, state(2), state(2), floats(2, 3 * HIDDEN), known=(4, 7), **BOTH),
    network("LSTM", 14, OWN, known=(4,), direction="reverse"),
)


test_rnn = compared(
    *(
        network("RNN", VERSIONS, *more, known=known, direction=way)
        for way, count in EACH_DIRECTION
        for more, known in (((), ()), ((OWN, state(count)), (4,)))
    ),
    network("RNN", 14, parts=2, activations=["Relu"], wanted=(1,)),
)


test_gru_with_own_lengths = compared(
    *(
        network("GRU", 14, *more, parts=parts, known=known, direction=way, linear_before_reset=is_before)
        for is_before in (0, 1)
        for way, parts, more, known in (
            ("forward", 2, (OWN,), ()),
            ("reverse", 3, (OWN,), (4,)),
            ("bidirectional", 3, (OWN, state(2)), ()),
        )
    ),
)


test_lengths_may_be_an_input_of_the_graph = compared(
    network("LSTM", 22, OWN, **BOTH),
    network("RNN", 22, OWN, direction="reverse"),
)


@pytest.mark.parametrize("known", [(4,), ()])
@pytest.mark.parametrize("operator", GATES)
async def test_a_sequence_without_steps_keeps_its_first_state(context, operator, known):
    states = [state() for _ in range(2 if operator == "LSTM" else 1)]
    (case,) = network(operator, 22, np.array([0, 3], np.int32), *states, known=known)
    sequence, *last = await run(context, case.model(), case.feeds)
    their_sequence, *their_last = run_onnxruntime(case.model(), case.feeds)  # whose last states are 0
    for given, theirs in zip(states, their_last, strict=True):
        theirs[:, 0] = given[:, 0]
    assert_same([sequence, *last], [their_sequence, *their_last])


ACTIVATIONS = ["Sigmoid", "HardSigmoid", "Tanh", "Softsign", "ScaledTanh", "Elu"]


test_clips_and_any_activations = compared(
    network(
        "LSTM", 14, None, state(2), state(2), clip=0.3, activations=ACTIVATIONS, activation_alpha=[0.3, 0.8, 0.6],
        activation_beta=[0.4, 0.7], **BOTH,
    ),
    network("LSTM", 22, input_forget=1),
    network(
        "GRU", 22, clip=0.4, activations=["ThresholdedRelu", "Affine"], activation_alpha=[0.1, 0.5],
        activation_beta=[0.2],
    ),
    network("RNN", 22, activations=["LeakyRelu", "HardSigmoid"], **BOTH),
    network("RNN", 22, activations=["Sigmoid"], clip=0.5, wanted=(1,)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "activations", "alphas", "betas"),
    [
        ("RNN", ["ThresholdedRelu"], [1.0], []),
        ("RNN", ["Affine"], [1.0], [0.0]),
        ("GRU", ["Affine", "ThresholdedRelu"], [1.0, 1.0], [0.0]),
        ("LSTM", ["Sigmoid", "Affine", "ThresholdedRelu"], [1.0, 1.0], [0.0]),
    ],
)
async def test_missing_alphas_are_the_operators_own(context, operator, activations, alphas, betas):
    (case,) = network(operator, 22, x=3 * X, parts=2, activations=activations)  # of onnxruntime they are 0
    given = {**case.attributes, "activation_alpha": alphas, **({"activation_beta": betas} if betas else {})}
    wanted = run_onnxruntime(attrs.evolve(case, attributes=given).model(), case.feeds)
    assert_same(await run(context, case.model(), case.feeds), wanted)


test_one_length_for_each_of_the_batch_is_needed = refused(
    (network("GRU", 22, OWN[:1]), "the shape of input sequence_lens is [1]; it must be [2]")
)


test_the_batch_as_the_first_axis = compared(
    network("LSTM", [14, 22], x=BATCH_FIRST, parts=2, layout=1, oracle="reference"),
    network("GRU", [14, 22], x=BATCH_FIRST, parts=2, layout=1, linear_before_reset=1, oracle="reference"),
    network("RNN", [14, 22], None, floats(BATCH, 1, HIDDEN), x=BATCH_FIRST, layout=1, oracle="reference"),
)
