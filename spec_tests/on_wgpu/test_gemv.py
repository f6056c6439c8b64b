"""Products of a matrix and a few vectors."""

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import check_both, integers
from webnn_py.device.on_wgpu.codegen.gemm import gemv_plan
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.wide_loader import WideMatrixLoader, widened
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import element
from webnn_py.device.on_wgpu.records.layout import Layout

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("vectors", [1, 2])
async def test_a_few_vectors_times_a_matrix_of_very_many_rows(ml, vectors):
    arrays = [integers((vectors, 68)), integers((20_003, 68))]
    await check_both(ml, arrays, lambda b, x, y: b.gemm(x, y, b_transpose=True))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threads", [256, 1024])
async def test_a_vector_times_a_matrix_that_is_read_several_steps_at_once(ml, monkeypatch, threads):
    monkeypatch.setattr(gemv_plan, "MOST_THREADS", threads)
    arrays = [integers((1, 1030)), integers((1030, 4096))]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("vectors", [1, 3, 8])
@pytest.mark.parametrize(("inner", "outer"), [(30, 40), (1030, 4096)])
async def test_vectors_times_a_float16_matrix_that_is_read_eight_elements_at_a_time(ml, vectors, inner, outer):
    arrays = [integers(shape, "float16", -1, 2) for shape in ((vectors, inner), (inner, outer))]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))


async def test_each_of_several_float16_matrices_is_read_eight_elements_at_a_time(ml):
    arrays = [integers(shape, "float16", -2, 3) for shape in ((3, 1, 20), (3, 20, 24))]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))


def float16_matrix(outer, batches=Layout((1,), (0,)), row=64, kind="constant", data_type="float16"):  # noqa: B008
    buffer = Buffer(kind, 2**20)
    return MatrixLoader(buffer, element(data_type, shader_f16=True), batches, Layout((16,), (row,)), outer, 1)


@pytest.mark.parametrize(
    "matrix",
    [
        float16_matrix(60, row=64),
        float16_matrix(56, row=60),
        float16_matrix(64, Layout((3,), (1028,))),
        float16_matrix(64, Layout((1,), (0,), 4)),
        float16_matrix(64, kind="block"),
        float16_matrix(64, data_type="float32"),
    ],
    ids=["outer", "row", "batch", "offset", "written", "float32"],
)
def test_matrices_are_not_read_eight_elements_at_a_time_where_these_are_not_there_or_not_aligned(matrix):
    assert widened(matrix) is matrix


def test_a_float16_matrix_of_aligned_rows_is_read_eight_elements_at_a_time():
    assert isinstance(widened(float16_matrix(64, Layout((3,), (1024,), 8))), WideMatrixLoader)
