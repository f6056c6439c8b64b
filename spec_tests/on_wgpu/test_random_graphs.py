"""Random graphs of all categories give on WebGPU what they give on numpy: to the bit, or within a computed bound.

Thousands of them, by hand: ``pytest spec_tests/on_wgpu/test_random_graphs.py --hypothesis-profile=thorough``, with
another ``--hypothesis-seed=N`` each time.
"""

from functools import cache

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from spec_tests.support.random_graphs.comparing import SETTINGS, assert_same
from spec_tests.support.random_graphs.programs import CATEGORIES, programs
from webnn_py import open_ml
from webnn_py.devices.wgpu import backend
from webnn_py.devices.wgpu.backend import features_of


@cache
def data_types():
    """The data types that the GPU has."""

    async def ask():
        async with open_ml() as ml:
            context = await ml.create_context(backend="wgpu")
            return tuple(context.op_support_limits()["input"]["data_types"])

    return trio.run(ask)


MISSING = [{}, {"shader_f16": False, "subgroups": False}]
"""Without the first, float16 lies packed in words; kernels that use the second have others for what lacks it."""


@pytest.mark.sampled(7)
@pytest.mark.parametrize("category", CATEGORIES)
@SETTINGS
@given(data=st.data())
def test_a_random_graph_gives_the_same_on_both_devices(category, data):
    missing = data.draw(st.sampled_from(MISSING), label="features that the adapter has not")
    program = data.draw(programs(category, data_types), label="program")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "features_of", lambda device: attrs.evolve(features_of(device), **missing))
        assert_same(program, "wgpu")
