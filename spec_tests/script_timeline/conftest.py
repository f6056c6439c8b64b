"""Fixtures of several tests of the script timeline."""

import pytest

from spec_tests.support.host_data import WAYS_IN
from spec_tests.support.scene import set_scene
from webnn_py import MLGraphBuilder


@pytest.fixture
async def builder(context):
    return MLGraphBuilder(context)


@pytest.fixture
async def scene(ml, options):
    return await set_scene(ml, options)


@pytest.fixture(params=WAYS_IN)
def way_in(request):
    """Return the name of a method that takes data."""
    return request.param
