"""Which adapter is chosen, and what a device made of it can do."""

import os

import attrs
import numpy as np
import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from webnn_py import MLGraphBuilder
from webnn_py.device.on_wgpu import adapters, backend

needs_adapter = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


def test_there_is_an_adapter():
    """Elsewhere a machine may have none; where every change is tested, it must have one."""
    if not HAS_ADAPTER and not os.environ.get("CI"):
        pytest.skip(NO_ADAPTER)
    assert HAS_ADAPTER, NO_ADAPTER


@needs_adapter
async def test_the_backend_tells_where_it_runs(gpu):
    assert gpu.backend.name == "wgpu"
    assert gpu.backend.adapter
    assert gpu.backend.driver
    assert gpu.backend.limits["max-storage-buffer-binding-size"] >= gpu.op_support_limits()["max_tensor_byte_length"]


@pytest.mark.parametrize(
    ("preference", "order"),
    [
        ("default", ["DiscreteGPU", "IntegratedGPU", "CPU"]),
        ("high-performance", ["DiscreteGPU", "IntegratedGPU", "CPU"]),
        ("low-power", ["IntegratedGPU", "DiscreteGPU", "CPU"]),
    ],
)
def test_power_preference_chooses_the_adapter(monkeypatch, preference, order):
    class Adapter:
        def __init__(self, kind):
            self.info = {"adapter_type": kind}

    there = [Adapter(kind) for kind in ("CPU", "IntegratedGPU", "DiscreteGPU")]
    monkeypatch.setattr(adapters, "adapters", lambda: tuple(there))
    for kind in order:
        chosen = adapters.choose(preference, software=True)
        assert chosen.info["adapter_type"] == kind
        there.remove(chosen)
    there[:] = [Adapter("CPU")]
    assert adapters.choose(preference, software=False) is None


@needs_adapter
async def test_64_bit_integers_are_refused_everywhere_where_the_adapter_has_none(ml, monkeypatch):
    features_of = backend.features_of
    monkeypatch.setattr(backend, "features_of", lambda device: attrs.evolve(features_of(device), shader_int64=False))
    context = await ml.create_context(backend="wgpu")
    limits = context.op_support_limits()
    assert not {"int64", "uint64"} & set(limits["input"]["data_types"])
    assert not {"int64", "uint64"} & set(limits["gather"]["indices"]["data_types"])
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[4])
    refused = r"int64; this device has float32, float16, int32, uint32, int8, uint8"
    with pytest.raises(TypeError, match=rf"create_buffer\(\): .*{refused}"):
        await context.create_buffer(data_type="int64", shape=[4])
    for draw in (
        lambda: builder.input("y", data_type="int64", shape=[4]),
        lambda: builder.constant(1, data_type="int64"),
        lambda: builder.constant(np.ones(4, np.int64)),
        lambda: builder.cast(x, "int64"),
        lambda: builder.arg_max(x, 0, output_data_type="int64"),
    ):
        with pytest.raises(TypeError, match="int64"):
            draw()
    graph = await builder.build({"y": builder.cast(x, "int32")})
    assert graph.output_descriptors["y"].data_type == "int32"
