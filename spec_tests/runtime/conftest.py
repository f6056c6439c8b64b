"""An environment on each device; its sessions' models are small."""

import numpy as np
import pytest

from spec_tests.support.runtime import Opener
from webnn_py.runtime import Environment

pytest.importorskip("onnx")


@pytest.fixture
def opener(ml, options):
    """What opens contexts for environments, watched."""
    return Opener(ml, options)


@pytest.fixture
async def env(ml, options):
    async with Environment(ml, **options) as environment:
        yield environment


@pytest.fixture
def x():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
async def gpu_env(ml, shared_gpu):
    async with Environment(ml, gpu_device=shared_gpu) as environment:
        yield environment
