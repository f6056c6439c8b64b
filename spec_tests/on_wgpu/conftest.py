"""Fixtures of the GPU's tests."""

from pathlib import Path

import attrs
import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import X, check_both
from webnn_py.devices.wgpu import backend as wgpu_backend
from webnn_py.devices.wgpu.backend import features_of
from webnn_py.devices.wgpu.codegen.attention import tile
from webnn_py.devices.wgpu.codegen.gemm import measured_tiles, selection, tile_choice, tiled
from webnn_py.devices.wgpu.codegen.gemm.measured_tiles import HOPPER
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue
from webnn_py.devices.wgpu.runtime.executable import WgpuGraph

FOLDER = Path(__file__).parent
PARTS = 5
"""Of a test here that has cases and does not say it otherwise, a quick run has one in so many."""

WITHOUT_ADAPTER = {
    "test_adapters",
    "test_arena",
    "test_composite_expansion",
    "test_elementwise",
    "test_failing_driver",
    "test_float16_accumulation",
    "test_layout",
    "test_standard_wgsl",
    "test_tile_choice",
}
"""The files with tests that need no adapter; of the others each test is skipped where there is none."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if not item.path.is_relative_to(FOLDER):
            continue
        if item.get_closest_marker("sampled") is None and hasattr(item, "callspec"):
            item.add_marker(pytest.mark.sampled(PARTS))
        if item.path.stem not in WITHOUT_ADAPTER:
            item.add_marker(pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER))


@pytest.fixture
def compiled(monkeypatch):
    """The kernels, bytes and texts of each graph that the GPU compiles, those for constants included."""
    graphs = []
    make = WgpuGraph.__init__

    def make_and_tell(self, *arguments, **options):
        make(self, *arguments, **options)
        graphs.append((len(self._steps), self.byte_length, {step.kernel.source for step in self._steps}))

    monkeypatch.setattr(WgpuGraph, "__init__", make_and_tell)
    return graphs


@pytest.fixture
def change_features(monkeypatch):
    """A function that changes the features of the adapter, as contexts that are created later see them."""

    def change(**features):
        monkeypatch.setattr(wgpu_backend, "features_of", lambda device: attrs.evolve(features_of(device), **features))

    return change


@pytest.fixture
def measured_gpu(change_features):
    """Make the adapter pass for the GPU on which tiles were measured."""
    change_features(gpu="hopper", max_workgroup_storage=32768)


@pytest.fixture
def all_products_large(measured_gpu, monkeypatch):
    """Every product counts as large enough for the tiles that were measured."""
    for name in ("LARGE_SIDE", "LARGE_PRODUCT"):
        for module in (tile_choice, tiled):
            monkeypatch.setattr(module, name, 1, raising=False)
    large, *others = HOPPER.rules
    large = attrs.evolve(large, rows=(1, large.rows[1]), columns=1)
    rules = tuple(attrs.evolve(rule, products=min(rule.products, 1)) for rule in (large, *others))
    monkeypatch.setitem(measured_tiles.MEASURED, "hopper", attrs.evolve(HOPPER, rules=rules))


@pytest.fixture
def check_kernels(ml, compiled):
    """Checks the number of kernels of a drawing of X on the GPU, and their results against numpy."""

    async def check(draw, kernels):
        await check_both(ml, [X], draw, rtol=1e-5, atol=1e-6)
        assert compiled[-1][0] == kernels

    return check


@pytest.fixture(autouse=True)
def as_hardware(request, monkeypatch):
    """Let the software adapter have the queue of hardware, but in the tests of its own queue."""
    if request.path.stem != "test_software_queue":
        monkeypatch.setattr(wgpu_backend, "SoftwareQueue", ContextQueue)


@pytest.fixture
async def gpu(ml):
    return await ml.create_context(backend="wgpu")


@pytest.fixture
def fuse_attention_from(monkeypatch):
    """A function that sets the products from which on attention is one kernel."""
    return lambda products: monkeypatch.setattr(tile, "LEAST_PRODUCTS", products)


@pytest.fixture
def take_tile(monkeypatch):
    """A function that makes every product use a tile, in so many parts."""
    return lambda chosen, parts=1: monkeypatch.setattr(tiled, "choose_work", lambda *_: (chosen, parts))


@pytest.fixture
def in_tiles(monkeypatch):
    """All products are computed in tiles, those of few rows, too."""
    monkeypatch.setattr(selection, "MOST_VECTORS", 0)


@pytest.fixture
def queue(gpu):
    """The queue of ``gpu``."""
    return gpu.device.backend._queue


@pytest.fixture
def ring(gpu):
    """The mapped memory through which ``gpu`` writes."""
    return gpu.device.backend._uploads


@pytest.fixture(params=[{}, {"shader_f16": False, "subgroups": False}], ids=["", "no 16-bit floats and subgroups"])
def adapter_features(request, change_features):
    """The features that are changed: none, or those that an adapter may lack, for which there are other kernels."""
    change_features(**request.param)
    return request.param
