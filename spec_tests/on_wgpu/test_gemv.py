"""Products of a matrix and a few vectors."""

import pytest

from spec_tests.support.both_devices import check_both, integers
from webnn_py.devices.wgpu.codegen.gemm import gemv_tiling


@pytest.mark.sampled(7)
@pytest.mark.parametrize("vectors", [1, 2])
async def test_a_few_vectors_times_a_matrix_of_very_many_rows(ml, vectors):
    arrays = [integers((vectors, 68)), integers((20_003, 68))]
    await check_both(ml, arrays, lambda b, x, y: b.gemm(x, y, b_transpose=True))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threads", [256, 1024])
async def test_a_vector_times_a_matrix_that_is_read_several_steps_at_once(ml, monkeypatch, threads):
    monkeypatch.setattr(gemv_tiling, "MOST_THREADS", threads)
    arrays = [integers((1, 1030)), integers((1030, 4096))]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("vectors", [1, 3, 8])
@pytest.mark.parametrize(("inner", "outer"), [(30, 40), (1030, 4096)])
async def test_vectors_times_a_float16_matrix(ml, vectors, inner, outer):
    arrays = [integers(shape, "float16", -1, 2) for shape in ((vectors, inner), (inner, outer))]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))


async def test_vectors_times_several_float16_matrices(ml):
    arrays = [integers(shape, "float16", -2, 3) for shape in ((3, 1, 20), (3, 20, 24))]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))
