"""Drawings computed on onnxruntime and on numpy."""

import numpy as np

from spec_tests.support.computing import results_of


async def computed(context, draw, *feeds):
    """Return what a drawing computes of inputs called x0, x1, …: one array, or arrays by name."""
    return await results_of(context, draw, feeds)


async def on_both(contexts, draw, *feeds):
    """Return what a drawing computes on each context."""
    return [await computed(context, draw, *feeds) for context in contexts]


async def assert_both(contexts, draw, *feeds, rtol=0.0, atol=0.0):
    """Check that a drawing computes the same on two contexts, to the bit or nearly; return what it computes."""
    got, expected = await on_both(contexts, draw, *feeds)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
    return got


def assert_same(ours, expected, **tolerances):
    """Check that arrays by name are the same, to the bit or nearly."""
    assert ours.keys() == expected.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, expected[name], **({"rtol": 0, "atol": 0} | tolerances), err_msg=name)


def assert_written(written, **counts):
    """Check how often operators of ONNX are in the models that were written."""
    assert {name: written[name] for name in counts} == counts
