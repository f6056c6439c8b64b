"""The same drawing on both devices, with data that no order of sums and products rounds."""

import numpy as np

from spec_tests.support.computing import results_of

X = np.random.default_rng(5).integers(-8, 8, (8, 12)).astype(np.float32) / 8
"""An input of small multiples of 1/8, whose sums and products are exact."""


def integers(shape, data_type="float32", low=-4, high=5):
    low = 0 if data_type.startswith("u") else low
    return np.random.default_rng(list(shape)).integers(low, high, shape).astype(data_type)


async def computed(ml, arrays, draw, backend="wgpu", **options):
    """Return what a drawing computes, as :func:`results_of` takes it, in a context of its own."""
    context = await ml.create_context(backend=backend, **options)
    results = await results_of(context, draw, arrays)
    context.destroy()
    return results


async def check_both(ml, arrays, draw, *, rtol=0, atol=None, is_finite=True):
    """Compare the outputs of a drawing, as :func:`computed` takes it, on both devices: to the bit, or within bounds."""
    results = [await computed(ml, arrays, draw, backend) for backend in ("numpy", "wgpu")]
    numpy, gpu = [one if isinstance(one, dict) else {"y": one} for one in results]
    for name, expected in numpy.items():
        got = gpu[name]
        assert got.dtype == expected.dtype
        assert not is_finite or np.isfinite(expected).all()
        if rtol == 0:
            np.testing.assert_array_equal(got, expected, name)
        else:
            atol = rtol if atol is None else atol
            np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol, atol, err_msg=name)
