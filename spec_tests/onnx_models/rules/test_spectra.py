import attrs
import numpy as np

from spec_tests.onnx_models.single_node import assert_same, check, each, node, run

rng = np.random.default_rng(16)


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def integer(value):
    return np.array(value, np.int64)


REAL, COMPLEX = floats(2, 9, 5, 1), floats(2, 9, 5, 2)


@each(
    *(
        node(
            "DFT",
            17,
            x,
            *length,
            known=range(1, 1 + len(length)),
            axis=axis,
            oracle="reference",
            absolute=1e-5,
            **attributes,
        )
        for x in (REAL, COMPLEX)
        for axis in (1, -2)
        for length in ((), (integer(8),), (integer(12),))
        for attributes in ({}, {"onesided": 1}, {"inverse": 1})
        if x is COMPLEX or attributes != {"inverse": 1}
    ),
    node("DFT", 17, COMPLEX, axis=1, absolute=1e-5),
    node("DFT", 20, COMPLEX, None, integer(-3), known=(2,), inverse=1, absolute=1e-5),
    node("DFT", 20, REAL, onesided=1, absolute=1e-5, oracle="reference"),
    node("DFT", 20, COMPLEX, None, integer(1), known=(2,), inverse=1, onesided=1, oracle="reference", absolute=1e-5),
    node(
        "DFT",
        20,
        COMPLEX,
        integer(9),
        integer(2),
        known=(1, 2),
        inverse=1,
        onesided=1,
        oracle="reference",
        absolute=1e-5,
    ),
)
async def test_transforms(context, case):
    await check(context, case)


SIGNAL = floats(2, 50, 1)


@each(
    *(
        node("STFT", 17, SIGNAL, integer(7), *more, known=known, onesided=onesided, absolute=1e-5)
        for more, known in (
            ((None, integer(16)), (1, 3)),
            ((floats(16),), (1,)),
            ((floats(16), integer(16)), (1, 2, 3)),
        )
        for onesided in (0, 1)
    ),
    node(
        "STFT", 17, floats(1, 40, 2), integer(10), floats(16), known=(1,), onesided=0, oracle="reference", absolute=1e-5
    ),
)
async def test_transforms_of_frames(context, case):
    await check(context, case)


@each(
    node("DFT", 17, REAL.astype(np.float16), integer(12), known=(1,), axis=1),
    node("STFT", 17, SIGNAL.astype(np.float16), integer(7), None, integer(16), known=(1, 3), onesided=1),
)
async def test_factors_that_are_too_small_for_float16_are_zeros_there(ml, case):
    x, *known = case.inputs
    wide = attrs.evolve(case, inputs=(x.astype(np.float32), *known))
    narrow, wanted = [
        await run(await ml.create_context(backend="numpy"), one.model(), one.feeds) for one in (case, wide)
    ]
    assert [item.dtype for item in narrow] == [np.float16]
    assert_same([item.astype(np.float32) for item in narrow], wanted, absolute=0.02)
