import attrs
import numpy as np

from spec_tests.onnx_models.single_node import Random, assert_same, compared, each, node, run

floats = Random(16).floats
REAL, COMPLEX = floats(2, 9, 5, 1), floats(2, 9, 5, 2)


def transform(version, x, *integers, known=(), **options):
    inputs = (None if value is None else np.array(value) for value in integers)
    return node("DFT", version, x, *inputs, known=known, absolute=1e-5, **options)


test_transforms = compared(
    *(
        transform(17, x, *length, known=range(1, 1 + len(length)), axis=axis, oracle="reference", **attributes)
        for x in (REAL, COMPLEX)
        for axis in (1, -2)
        for length in ((), (8,), (12,))
        for attributes in ({}, {"onesided": 1}, {"inverse": 1})
        if x is COMPLEX or attributes != {"inverse": 1}
    ),
    transform(17, COMPLEX, axis=1),
    transform(20, COMPLEX, None, -3, known=(2,), inverse=1),
    transform(20, REAL, onesided=1, oracle="reference"),
    transform(20, COMPLEX, None, 1, known=(2,), inverse=1, onesided=1, oracle="reference"),
    transform(20, COMPLEX, 9, 2, known=(1, 2), inverse=1, onesided=1, oracle="reference"),
)


SIGNAL = floats(2, 50, 1)


def framed(x, step, *more, **options):
    return node("STFT", 17, x, np.array(step), *more, absolute=1e-5, **options)


test_transforms_of_frames = compared(
    *(
        framed(SIGNAL, 7, *more, known=known, onesided=onesided)
        for more, known in (
            ((None, np.array(16)), (1, 3)),
            ((floats(16),), (1,)),
            ((floats(16), np.array(16)), (1, 2, 3)),
        )
        for onesided in (0, 1)
    ),
    framed(floats(1, 40, 2), 10, floats(16), known=(1,), onesided=0, oracle="reference"),
)


@each(
    transform(17, REAL.astype(np.float16), 12, known=(1,), axis=1),
    framed(SIGNAL.astype(np.float16), 7, None, np.array(16), known=(1, 3), onesided=1),
)
async def test_factors_that_are_too_small_for_float16_are_zeros_there(context, case):
    x, *known = case.inputs
    wide = attrs.evolve(case, inputs=(x.astype(np.float32), *known))
    narrow, wanted = [await run(context, one.model(), one.feeds) for one in (case, wide)]
    assert [item.dtype for item in narrow] == [np.float16]
    assert_same([item.astype(np.float32) for item in narrow], wanted, absolute=0.02)
