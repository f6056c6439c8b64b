"""Products of a matrix and a few vectors."""

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import check_both, integers

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("vectors", [1, 2])
async def test_a_few_vectors_times_a_matrix_of_very_many_rows(ml, vectors):
    arrays = [integers((vectors, 68)), integers((20_003, 68))]
    await check_both(ml, arrays, lambda b, x, y: b.gemm(x, y, b_transpose=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("vectors", [1, 3])
async def test_a_few_vectors_times_a_matrix_that_is_read_several_steps_at_once(ml, vectors):
    arrays = [integers((vectors, 1030)), integers((1030, 4096))]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))
