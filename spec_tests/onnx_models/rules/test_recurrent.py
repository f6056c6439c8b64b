import numpy as np

from spec_tests.onnx_models.single_node import assert_refused, check, each, node

rng = np.random.default_rng(11)
STEPS, BATCH, FEATURES, HIDDEN = 5, 2, 3, 4
X = rng.uniform(-1, 1, [STEPS, BATCH, FEATURES]).astype(np.float32)
VERSIONS = [7, 14, 22]
LENGTHS = np.full(BATCH, STEPS, np.int32)


def floats(*shape):
    return rng.uniform(-0.7, 0.7, shape).astype(np.float32)


def parameters(gates, directions=1):
    return (
        floats(directions, gates * HIDDEN, FEATURES),
        floats(directions, gates * HIDDEN, HIDDEN),
        floats(directions, 2 * gates * HIDDEN),
    )


def state(directions=1):
    return floats(directions, BATCH, HIDDEN)


@each(
    node("LSTM", VERSIONS, X, *parameters(4)[:2], hidden_size=HIDDEN, outputs=3, wanted=(0, 1, 2)),
    node("LSTM", VERSIONS, X, *parameters(4), known=(1, 2, 3), hidden_size=HIDDEN, outputs=3, wanted=(1,)),
    node(
        "LSTM",
        VERSIONS,
        X,
        *parameters(4),
        LENGTHS,
        state(),
        state(),
        known=(1, 2, 3, 4),
        hidden_size=HIDDEN,
        direction="reverse",
        outputs=3,
        wanted=(0, 1, 2),
    ),
    node(
        "LSTM",
        VERSIONS,
        X,
        *parameters(4, 2),
        None,
        state(2),
        state(2),
        np.zeros([2, 3 * HIDDEN], np.float32),
        known=(1, 2, 3, 7),
        hidden_size=HIDDEN,
        direction="bidirectional",
        outputs=3,
        wanted=(0, 2),
    ),
    node("LSTM", 14, X, *parameters(4), hidden_size=HIDDEN, activations=["Sigmoid", "Relu", "Tanh"], outputs=1),
)
async def test_lstm(context, case):
    await check(context, case)


@each(
    *(
        node(
            "GRU",
            VERSIONS,
            X,
            *parameters(3, 2 if direction == "bidirectional" else 1),
            LENGTHS,
            state(2 if direction == "bidirectional" else 1),
            known=(1, 2, 3, 4),
            hidden_size=HIDDEN,
            direction=direction,
            linear_before_reset=linear_before_reset,
            outputs=2,
            wanted=(0, 1),
        )
        for direction in ("forward", "reverse", "bidirectional")
        for linear_before_reset in (0, 1)
    ),
    node("GRU", VERSIONS, X, *parameters(3)[:2], hidden_size=HIDDEN, outputs=2, wanted=(1,)),
    node(
        "GRU",
        14,
        X,
        *parameters(3, 2),
        hidden_size=HIDDEN,
        direction="bidirectional",
        activations=["Sigmoid", "Relu"] * 2,
        outputs=2,
        wanted=(0, 1),
    ),
)
async def test_gru(context, case):
    await check(context, case)


PEEPHOLES = floats(1, 3 * HIDDEN)
OWN = np.array([3, 5], np.int32)


@each(
    node(
        "LSTM",
        VERSIONS,
        X,
        *parameters(4),
        None,
        None,
        None,
        PEEPHOLES,
        hidden_size=HIDDEN,
        outputs=3,
        wanted=(0, 1, 2),
    ),
    node(
        "LSTM",
        14,
        X,
        *parameters(4, 2),
        OWN,
        state(2),
        state(2),
        floats(2, 3 * HIDDEN),
        known=(4, 7),
        hidden_size=HIDDEN,
        direction="bidirectional",
        outputs=3,
        wanted=(0, 1, 2),
    ),
    node(
        "LSTM",
        14,
        X,
        *parameters(4),
        OWN,
        known=(4,),
        hidden_size=HIDDEN,
        direction="reverse",
        outputs=3,
        wanted=(0, 1, 2),
    ),
)
async def test_lstm_with_peepholes_or_own_lengths(context, case):
    await check(context, case)


@each(
    *(
        node(
            "RNN",
            VERSIONS,
            X,
            *parameters(1, 2 if direction == "bidirectional" else 1),
            *more,
            known=known,
            hidden_size=HIDDEN,
            direction=direction,
            outputs=2,
            wanted=(0, 1),
        )
        for direction in ("forward", "reverse", "bidirectional")
        for more, known in (((), ()), ((OWN, state(2 if direction == "bidirectional" else 1)), (4,)))
    ),
    node("RNN", 14, X, *parameters(1)[:2], hidden_size=HIDDEN, activations=["Relu"], outputs=2, wanted=(1,)),
)
async def test_rnn(context, case):
    await check(context, case)


@each(
    *(
        node(
            "GRU",
            14,
            X,
            *parameters(3, 2 if direction == "bidirectional" else 1)[:parts],
            *more,
            known=(4,) if direction == "reverse" else (),
            hidden_size=HIDDEN,
            direction=direction,
            linear_before_reset=linear_before_reset,
            outputs=2,
            wanted=(0, 1),
        )
        for linear_before_reset in (0, 1)
        for direction, parts, more in (
            ("forward", 2, (None, OWN)),
            ("reverse", 3, (OWN,)),
            ("bidirectional", 3, (OWN, state(2))),
        )
    ),
)
async def test_gru_with_own_lengths(context, case):
    await check(context, case)


@each(
    node(
        "LSTM",
        22,
        X,
        *parameters(4, 2),
        OWN,
        hidden_size=HIDDEN,
        direction="bidirectional",
        outputs=3,
        wanted=(0, 1, 2),
    ),
    node("RNN", 22, X, *parameters(1), OWN, hidden_size=HIDDEN, direction="reverse", outputs=2, wanted=(0, 1)),
)
async def test_lengths_may_be_an_input_of_the_graph(context, case):
    await check(context, case)


@each(
    node(
        "LSTM",
        14,
        X,
        *parameters(4, 2),
        None,
        state(2),
        state(2),
        clip=0.3,
        hidden_size=HIDDEN,
        direction="bidirectional",
        activations=["Sigmoid", "HardSigmoid", "Tanh", "Softsign", "ScaledTanh", "Elu"],
        activation_alpha=[0.3, 0.8, 0.6],
        activation_beta=[0.4, 0.7],
        outputs=3,
        wanted=(0, 1, 2),
    ),
    node("LSTM", 22, X, *parameters(4), hidden_size=HIDDEN, input_forget=1, outputs=3, wanted=(0, 1, 2)),
    node(
        "GRU",
        22,
        X,
        *parameters(3),
        clip=0.4,
        hidden_size=HIDDEN,
        activations=["ThresholdedRelu", "Affine"],
        activation_alpha=[0.1, 0.5],
        activation_beta=[0.2],
        outputs=2,
        wanted=(0, 1),
    ),
    node(
        "RNN",
        22,
        X,
        *parameters(1, 2),
        hidden_size=HIDDEN,
        direction="bidirectional",
        activations=["LeakyRelu", "HardSigmoid"],
        outputs=2,
        wanted=(0, 1),
    ),
    node("RNN", 22, X, *parameters(1), hidden_size=HIDDEN, activations=["Sigmoid"], clip=0.5, outputs=2, wanted=(1,)),
)
async def test_clips_and_any_activations(context, case):
    await check(context, case)


async def test_one_length_for_each_of_the_batch_is_needed(context):
    (case,) = node("GRU", 22, X, *parameters(3), OWN[:1], hidden_size=HIDDEN, outputs=2)
    assert_refused(context, case, "the shape of input sequence_lens is [1]; it must be [2]")


BATCH_FIRST = X.swapaxes(0, 1).copy()


@each(
    node(
        "LSTM",
        [14, 22],
        BATCH_FIRST,
        *parameters(4)[:2],
        hidden_size=HIDDEN,
        layout=1,
        outputs=3,
        wanted=(0, 1, 2),
        oracle="reference",
    ),
    node(
        "GRU",
        [14, 22],
        BATCH_FIRST,
        *parameters(3)[:2],
        hidden_size=HIDDEN,
        layout=1,
        linear_before_reset=1,
        outputs=2,
        wanted=(0, 1),
        oracle="reference",
    ),
    node(
        "RNN",
        [14, 22],
        BATCH_FIRST,
        *parameters(1),
        None,
        floats(BATCH, 1, HIDDEN),
        hidden_size=HIDDEN,
        layout=1,
        outputs=2,
        wanted=(0, 1),
        oracle="reference",
    ),
)
async def test_the_batch_as_the_first_axis(context, case):
    await check(context, case)
