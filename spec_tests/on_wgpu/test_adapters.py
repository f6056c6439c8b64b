"""Which adapter is chosen, and what a device made of it can do."""

import os
import subprocess
import sys

import numpy as np
import pytest

from spec_tests.support.backends import needs_adapter
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder, NotSupportedError
from webnn_py.core.device.registry import Suitability
from webnn_py.devices.wgpu import adapters, device_record


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
def test_power_preference_chooses_the_adapter(set_adapters, preference, order):
    there = [NamedAdapter("", kind) for kind in ("CPU", "IntegratedGPU", "DiscreteGPU")]
    set_adapters(there)
    for kind in order:
        chosen = adapters.choose(preference, software=True)
        assert chosen.info["adapter_type"] == kind
        there.remove(chosen)
    there[:] = [NamedAdapter("", "CPU")]
    assert adapters.choose(preference, software=False) is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere GPUs have no files, and every look is a real one")
def test_without_a_gpu_no_driver_is_loaded_to_find_that_out(monkeypatch, set_adapters, tmp_path):
    monkeypatch.setattr(device_record, "GPU_NODES", (f"{tmp_path}/renderD*", f"{tmp_path}/nvidia[0-9]*"))
    set_adapters([])
    looked = noted(monkeypatch, adapters, "adapters")
    assert device_record.RECORD.probe("default") is Suitability.ON_REQUEST
    assert looked == [], "drivers were loaded"

    (tmp_path / "nvidia0").touch()
    assert device_record.RECORD.probe("default") is Suitability.ABSENT
    assert looked


AFTER_OTHERS = """
import trio
import wgpu

wgpu.gpu.enumerate_adapters_sync()

import webnn_py

async def main():
    async with webnn_py.open_ml() as ml:
        print((await ml.create_context(backend="wgpu")).backend.name)

trio.run(main)
"""


@needs_adapter
def test_a_program_may_have_used_wgpu_before():
    ran = subprocess.run([sys.executable, "-c", AFTER_OTHERS], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "wgpu\n"), ran.stderr


QUIET = """
import os
import trio
from webnn_py import open_ml

async def main():
    async with open_ml() as ml:
        context = await ml.create_context(backend="wgpu")
        print(context.backend.name)

before = dict(os.environ)
trio.run(main)
assert dict(os.environ) == before
"""


@needs_adapter
@pytest.mark.parametrize("directory", [None, "", "relative"])
def test_looking_for_a_gpu_writes_nothing_to_the_terminal(directory):
    environment = {name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "DISPLAY")}
    if directory is not None:
        environment["XDG_RUNTIME_DIR"] = directory
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, env=environment, check=True)
    assert (done.stdout, done.stderr) == ("wgpu\n", "")


@needs_adapter
async def test_64_bit_integers_are_refused_everywhere_where_the_adapter_has_none(ml, change_features):
    change_features(shader_int64=False)
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


# --- the option adapter --------------------------------------------------------------------------------------------


class NamedAdapter:
    def __init__(self, name, kind="DiscreteGPU"):
        self.info = {"device": name, "adapter_type": kind}


@pytest.fixture
def three_gpus(set_adapters):
    """Two of one kind, and a software one."""
    there = (NamedAdapter("H200"), NamedAdapter("H200"), NamedAdapter("llvmpipe", "CPU"))
    set_adapters(there)
    return there


def test_an_adapter_is_found_by_its_index_or_a_part_of_its_name(three_gpus):
    assert [adapters.find(index) for index in range(3)] == list(three_gpus)
    assert adapters.find("LLVM") is three_gpus[2]
    assert adapters.find("(software)") is three_gpus[2]


@pytest.mark.usefixtures("three_gpus")
def test_equal_adapters_are_told_apart_by_their_index_alone():
    listed = r"There are 0: H200 \(DiscreteGPU\); 1: H200 \(DiscreteGPU\); 2: llvmpipe \(software\)$"
    with pytest.raises(TypeError, match=rf"adapter is 'h200', which fits \[0, 1\]; give the index of one. {listed}"):
        adapters.find("h200")


@pytest.mark.usefixtures("three_gpus")
@pytest.mark.parametrize("wanted", [3, "RTX"])
def test_an_adapter_that_is_not_there_is_refused_with_those_that_are(wanted):
    text = rf"adapter is {wanted!r}, and there is none of that index or name; there are 0: H200 .*; 2: llvmpipe"
    with pytest.raises(NotSupportedError, match=text):
        adapters.find(wanted)


@needs_adapter
async def test_a_context_runs_on_the_adapter_that_it_asks_for(ml, gpu):
    names = [adapters.describe(adapter).adapter for adapter in adapters.adapters()]
    for index, name in enumerate(names):
        context = await ml.create_context(adapter=index)
        assert context.backend.adapter == name
        assert context.device.backend.device.adapter is adapters.adapters()[index]
    if len(names) == 1:
        context = await ml.create_context(adapter=gpu.backend.adapter.upper())
        assert context.device.backend.device is gpu.device.backend.device


@pytest.mark.usefixtures("no_adapters")
async def test_without_any_adapter_the_option_says_what_to_install(ml):
    with pytest.raises(NotSupportedError, match=r"create_context\(\): no adapter for WebGPU"):
        await ml.create_context(adapter=0)


@pytest.mark.parametrize("value", [True, -1, 2**32, 1.0, "", b"0", [0]], ids=repr)
async def test_an_adapter_is_asked_for_by_an_index_or_a_text(ml, value):
    with pytest.raises(TypeError, match=r"create_context\(\): adapter is .*; it must be an adapter's index, or a part"):
        await ml.create_context(adapter=value)


@needs_adapter
async def test_a_gpu_device_has_its_adapter(ml, shared_gpu):
    with pytest.raises(TypeError, match=r"create_context\(\): adapter is 0, and gpu_device is given"):
        await ml.create_context(adapter=0, gpu_device=shared_gpu)
