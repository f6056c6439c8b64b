"""Fixtures of every test: a fixed seed, numpy that raises instead of warning, and an open API."""

import gc
import os
import signal
import sys

# Software Vulkan compiles a kernel a third faster without the driver's own optimizations; the kernels are the same.
# The driver reads it when it is loaded, so before the imports below.
os.environ.setdefault("GALLIVM_PERF", "nopt")

# Workers side by side take all cores: threads of OpenBLAS would wait for each other. And tests compare to the bit what
# OpenBLAS may round otherwise on another number of threads. Numpy reads it when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A hundred tests start interpreters, and each would compile the package again, for a third of a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False  # nor is each worker to compile what is imported below

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import webnn_py
from spec_tests.operators import choosing
from spec_tests.support import backends, checked_indices, covered, depth, sampled_engine
from spec_tests.support.backends import BACKENDS, HAS_ADAPTER, NO_ADAPTER, on_each
from spec_tests.support.binding_rules import check_bindings
from spec_tests.support.chromium import Chromium, installed
from spec_tests.support.covered import pytest_sessionstart  # noqa: F401 - a hook
from spec_tests.support.depth import pytest_report_header  # noqa: F401 - a hook
from spec_tests.support.skips import pytest_runtest_makereport  # noqa: F401 - a hook
from spec_tests.support.watched_device import WatchedDevice
from spec_tests.support.workers import (  # noqa: F401 - hooks
    pytest_collection,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)
from spec_tests.wpt.option import pytest_addoption as add_wpt_option
from spec_tests.wpt.option import pytest_ignore_collect, pytest_terminal_summary  # noqa: F401 - hooks
from webnn_py.devices.wgpu.adapters import choose, request_device
from webnn_py.devices.wgpu.records.recently_used import Room
from webnn_py.devices.wgpu.runtime.pipelines import Pipelines
from webnn_py.profiling import measuring

MOST_PIPELINES = Room(count=2000, byte_length=2**30)
"""So many are kept for the next tests: software Vulkan takes about half a megabyte for each."""

settings.register_profile("untimed", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
"""Examples are the same in every run, and may take any time: that depends on what else the machine does."""

settings.register_profile("thorough", max_examples=5000, deadline=None, print_blob=True)
"""For hours of looking for what nobody thought of: ``--hypothesis-profile=thorough --hypothesis-seed=N``."""

QUICK_EXAMPLES = 40
"""How many random examples a run at quick depth tries where the other depths try 100."""


def pytest_addoption(parser):
    add_wpt_option(parser)
    depth.pytest_addoption(parser)
    covered.pytest_addoption(parser)
    sampled_engine.pytest_addoption(parser)
    backends.pytest_addoption(parser)
    choosing.pytest_addoption(parser)
    parser.addoption(checked_indices.OPTION, action="store_true", help="check the GPU kernels' indices in the shaders")


def pytest_configure(config):
    gc.disable()  # until all tests are collected: what is imported and collected stays
    depth.configure(config)
    sampled_engine.configure(config)
    backends.configure(config)
    if config.getoption("--hypothesis-profile", None) is None:
        examples = settings().max_examples if depth.is_full(config) else QUICK_EXAMPLES
        is_fixed = config.getoption("--hypothesis-seed", None) is None
        settings.register_profile("by depth", settings(), max_examples=examples, derandomize=is_fixed)
        settings.load_profile("by depth")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job; some tests interrupt themselves
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    depth.choose(config, items)
    choosing.choose(config, items)
    sampled_engine.choose(config, items)


def pytest_collection_finish():
    """Tens of thousands of collected tests are not looked at again whenever garbage is collected."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _checked_kernels(request):
    """Throughout: what kernels bind, and their indices if the option says so."""
    with pytest.MonkeyPatch.context() as patch:
        check_bindings(patch)
        if request.config.getoption(checked_indices.OPTION):
            checked_indices.check_indices(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def _cold_devices():
    """A profile neither warms its device up nor finds its rates with large data, but where a test is about that."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ROW_SECONDS", "MOST_WARMING_SECONDS"):
            patch.setattr(measuring, name, 0.0)
        patch.setattr(measuring, "COPY_BYTES", (2**16,))
        patch.setattr(measuring, "PRODUCT_SIZES", (64,))
        yield


@pytest.fixture(autouse=True, scope="module")
def _garbage():
    """Collected after each file of tests; what then is left is not looked at again, however often tests collect."""
    yield
    gc.collect()
    gc.freeze()


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


backend = on_each(BACKENDS)
"""The name of a backend; a test that uses this, or ``context``, runs on each."""


@pytest.fixture(scope="session")
def shared_gpu():
    """One GPU device for all contexts of all tests: making one takes longer than most tests."""
    if not HAS_ADAPTER:
        pytest.skip(NO_ADAPTER)
    gpu = request_device(choose("default", software=True))
    # Kept, so that no test compiles what another one has compiled.
    pipelines = Pipelines.on_device(gpu, MOST_PIPELINES)
    yield gpu
    pipelines.close(MOST_PIPELINES)
    gpu.destroy()


@pytest.fixture(scope="module")
def options(request, backend):
    """Return what a test gives to ``create_context()``; where a test loses its device, the module overrides this."""
    return {"gpu_device": request.getfixturevalue("shared_gpu")} if backend == "wgpu" else {"backend": backend}


@pytest.fixture(scope="module")
def elsewhere(request, backend):
    """Likewise, for a context beside one whose device a test loses: contexts without a ``gpu_device`` share one."""
    return {"gpu_device": request.getfixturevalue("shared_gpu")} if backend == "wgpu" else {"backend": backend}


@pytest.fixture
async def context(ml, options):
    """A context on each backend."""
    return await ml.create_context(**options)


@pytest.fixture
async def numpy_context(ml):
    """A context on the numpy device, for what is numpy's alone."""
    return await ml.create_context(backend="numpy")


@pytest.fixture
async def device(context):
    """The device of ``context``, watched."""
    watched = WatchedDevice(context)
    yield watched
    watched.let_go()


@pytest.fixture(scope="session")
def browser():
    """Chromium, with one page."""
    if (path := installed()) is None:
        pytest.skip("no Chromium is installed (apt install chromium, or name one in CHROMIUM)")
    chromium = Chromium(path)
    yield chromium
    chromium.close()


@pytest.fixture
def set_adapters(monkeypatch):
    """A function that takes a list, and makes it the machine's adapters for WebGPU."""
    from webnn_py.devices.wgpu import adapters  # noqa: PLC0415 - imports wgpu

    return lambda there: monkeypatch.setattr(adapters, "adapters", lambda *_: tuple(there))


@pytest.fixture
def no_adapters(set_adapters):
    """A machine without any driver for WebGPU."""
    set_adapters([])


@pytest.fixture
def unraisable(monkeypatch):
    """The texts of errors that nothing can catch, as those of finalizers."""
    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda problem: said.append(str(problem.exc_value)))
    return said
