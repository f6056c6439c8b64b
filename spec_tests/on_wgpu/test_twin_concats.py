"""Two concats side by side, as of keys and of values, are one kernel."""

import numpy as np
import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


def caches(b, old, new):
    keys, values = b.concat([old, new], 1), b.concat([new, old], 1)
    return {"keys": keys, "values": values}


def of_one_shape(b, old, new):
    return {"keys": b.concat([old, b.abs(old)], 1), "values": b.concat([old, old], 1), "new": b.neg(new)}


def one_reads_the_other(b, old, new):
    first = b.concat([old, new], 0)
    return {"first": first, "second": b.concat([first, b.concat([old, new], 0)], 0)}


def two_pairs(b, old, new):
    return {name: b.concat([old, new] if name < "c" else [new, old], 0) for name in "abcd"}


def along_other_axes(b, old, new):
    return {"down": b.concat([old, new], 0), "across": b.concat([old, new], 1)}


KERNELS = {
    along_other_axes: (2, 2),
    caches: (1, 2),
    of_one_shape: (3, 4),
    one_reads_the_other: (2, 3),
    two_pairs: (2, 4),
}
"""With rows of whole vec4s, and without."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("draw", KERNELS, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("width", [8, 3])
async def test_twins_compute_the_same_in_fewer_kernels(ml, compiled, apart, draw, width):
    rng = np.random.default_rng(width)
    arrays = {"old": rng.random((3, 5, width), np.float32), "new": rng.random((3, 5, width), np.float32)}
    results = []
    for backend in ("numpy", "wgpu"):
        context = await ml.create_context(backend=backend)
        b = MLGraphBuilder(context)
        operands = [b.input(name, data_type="float32", shape=array.shape) for name, array in arrays.items()]
        results.append(await compute(context, b, arrays, draw(b, *operands)))
    for name, expected in results[0].items():
        np.testing.assert_array_equal(results[1][name], expected, name)
    assert compiled[-1][0] == KERNELS[draw][width % 4 > 0]
