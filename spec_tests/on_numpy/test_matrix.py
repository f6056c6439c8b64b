"""Large float16 products on the numpy device are computed in blocks, which give what the whole gives."""

import numpy as np
import pytest

from spec_tests.support.computing import result_of, results_of
from webnn_py.devices.numpy.kernels import matrix

SHAPES = {
    "every axis cut": [(33, 41), (41, 37)],
    "a long inner axis": [(3, 900), (900, 5)],
    "many rows": [(700, 3), (3, 4)],
    "many columns": [(4, 3), (3, 700)],
    "batches": [(5, 2, 9, 12), (2, 12, 7)],
    "few rows": [(3, 40), (40, 50)],
    "small matrices, several at a time": [(40, 2, 3), (40, 3, 2)],
    "one matrix for all": [(6, 20, 30), (30, 10)],
}


@pytest.fixture(params=[16, 300, 3000], ids="{} elements at a time".format)
def _few_at_a_time(request, monkeypatch):
    monkeypatch.setattr(matrix, "WIDENED", request.param)


def halves(rng, shape):
    return rng.integers(-8, 9, shape).astype(np.float16)


@pytest.mark.usefixtures("_few_at_a_time")
@pytest.mark.parametrize(("a", "b"), SHAPES.values(), ids=SHAPES)
async def test_matmul(numpy_context, rng, a, b):
    arrays = {"a": halves(rng, a), "b": halves(rng, b)}
    got = await result_of(numpy_context, lambda builder, a, b: builder.matmul(a, b), **arrays)
    expected = np.matmul(*(array.astype(np.float32) for array in arrays.values())).astype(np.float16)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.usefixtures("_few_at_a_time")
@pytest.mark.parametrize("c", [None, (37,), (33, 1), (33, 37)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
async def test_gemm(numpy_context, rng, c, transposed):
    arrays = {"a": halves(rng, (33, 41)), "b": halves(rng, (41, 37)), "c": halves(rng, c or ())}
    given = {"a": arrays["a"].T.copy(), "b": arrays["b"].T.copy(), "c": arrays["c"]} if transposed else arrays

    def draw(builder, x, y, z):
        options = {} if c is None else {"c": z, "beta": 0.5}
        return builder.gemm(x, y, alpha=2, a_transpose=transposed, b_transpose=transposed, **options)

    got = await results_of(numpy_context, draw, [*given.values()])
    wide_a, wide_b, wide_c = (array.astype(np.float32) for array in arrays.values())
    expected = 2 * (wide_a @ wide_b) + (0 if c is None else wide_c / 2)
    np.testing.assert_array_equal(got, expected.astype(np.float16))
