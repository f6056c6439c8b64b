"""Last steps of products: addends in the memory of the sums, and long ones, which are written once."""

import re
from itertools import groupby

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both, integers
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.codegen.gemm.tile_store import AT_ONCE


def with_residual(weight):
    """relu(x · weight + abs(x · 1)), of two products that are both intermediates."""

    def draw(b, x):
        residual = b.abs(b.matmul(x, b.constant(integers(weight.shape, low=0, high=2))))
        y = b.relu(b.add(b.matmul(x, b.constant(weight)), residual))
        return b.reduce_sum(y, axes=[1])

    return draw


@pytest.mark.sampled(5)
@pytest.mark.parametrize("columns", [68, 67])
async def test_residuals_of_tiles_that_overhang(ml, compiled, columns, take_tile):
    """Each is read before a sum is stored in its place."""
    rows, inner = 37, 30
    take_tile(GemmTile(32, 32, 8, 8))
    await check_both(ml, [integers((rows, inner))], with_residual(integers((inner, columns))))
    texts = [text for text in compiled[-1][2] if "= ended" in text]
    assert texts
    for text in texts:
        steps = re.findall(r"put(?:_one)?(?=\(at_)|(?<== )ended", text)
        runs = [name for name, _ in groupby(steps)]
        at_once = AT_ONCE * (4 if "put_one" in steps else 1)
        assert runs.count(steps[-1]) == -(-steps.count(steps[-1]) // at_once)
        assert steps[-1] != "ended"


def gelu(b, x, data_type):
    """As models draw it, step by step."""
    half, one, root = (b.constant(number, data_type=data_type) for number in (0.5, 1, 2**0.5))
    return b.mul(b.mul(x, half), b.add(b.erf(b.div(x, root)), one))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(64, 32, 200), (37, 30, 66)], ids=str)
async def test_a_long_last_step(ml, compiled, data_type, shape):
    rows, inner, columns = shape
    rng = np.random.default_rng(rows)
    x = (rng.integers(-8, 9, (rows, inner)) / 8).astype(data_type)
    weight = (rng.integers(-8, 9, (inner, columns)) / 16).astype(data_type)
    rtol = 1e-5 if data_type == "float32" else 2e-3
    await check_both(ml, [x], lambda b, x: gelu(b, b.matmul(x, b.constant(weight)), data_type), rtol=rtol)
    sources = [source for source in compiled[-1][2] if "fn chain(" in source and "totals[share]" in source]
    calls = {source.count("ended(") + source.count("ended_one(") for source in sources}
    assert calls <= {3, 6}, "its function, one call of it by finish, and one more, or one for each of four elements"
    assert calls
