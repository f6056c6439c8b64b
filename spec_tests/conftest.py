"""What every test has: a fixed seed, numpy that raises instead of warning, and an open API."""

import numpy as np
import pytest

import webnn_py
from spec_tests.support.fake_device import FakeDevice
from spec_tests.wpt.option import pytest_addoption, pytest_ignore_collect, pytest_terminal_summary  # noqa: F401 - hooks


@pytest.fixture(autouse=True)
def _numpy_raises():
    """Outside the kernels, which say themselves what they ignore, no test computes nonsense unnoticed."""
    with np.errstate(all="raise"):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(seed=716)


@pytest.fixture
async def ml():
    async with webnn_py.open_ml() as opened:
        yield opened


@pytest.fixture
async def context(ml):
    """A context on the numpy device."""
    return await ml.create_context(backend="numpy")


@pytest.fixture
async def fake():
    """A fake device; ``fake_context`` is the context that runs on it."""
    device = FakeDevice()
    yield device
    device.let_go()


@pytest.fixture
async def fake_context(ml, fake):
    return await ml._create_context(fake)


@pytest.fixture
def no_adapters(monkeypatch):
    """A machine without any driver for WebGPU."""
    from webnn_py.device.on_wgpu import adapters  # noqa: PLC0415 - imports wgpu

    monkeypatch.setattr(adapters, "adapters", lambda: ())
