"""The arithmetic of an adapter, measured by a shader that uses nothing of the library."""

from functools import cache

import numpy as np
import wgpu

from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.devices.onnxruntime import device_record
from webnn_py.devices.wgpu import adapters

SHADER = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> factors: array<f32>;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3<u32>) {
  x[group.x] = x[group.x] * factors[group.x];
}
"""

WEBGPU_PROVIDER = "WebGpuExecutionProvider"

SMALLEST_NORMAL = 2.0**-126


@cache
def takes_subnormals_for_zero(backend: str) -> bool:
    """Return whether a backend may flush subnormal float32 numbers, as WGSL allows (section "Floating Point Accuracy").

    It asks the adapter that ``create_context(backend="wgpu")`` chooses. onnxruntime's WebGPU provider chooses its own,
    which may.
    """
    if backend != "wgpu":
        return backend == "onnxruntime" and device_record.DEFAULT_PROVIDER == WEBGPU_PROVIDER
    numbers = np.float32([SMALLEST_NORMAL, SMALLEST_NORMAL / 4, SMALLEST_NORMAL / 4])
    factors = np.float32([0.5, 2, 2.0**20])
    products = _multiplied(numbers, factors)
    return bool((products != numbers * factors).any())


@cache
def missing_data_types(backend: str) -> tuple[str, ...]:
    """Return the data types that a backend's adapter lacks: 64-bit integers, or float16 with onnxruntime's provider."""
    if backend == "wgpu":
        has_long = "shader-int64" in adapters.choose("default", software=True).features
        return () if has_long else ("int64", "uint64")
    if backend != "onnxruntime" or device_record.DEFAULT_PROVIDER != WEBGPU_PROVIDER:
        return ()
    from webnn_py.devices.onnxruntime import engine, webgpu_adapter  # noqa: PLC0415 - an extra

    there = webgpu_adapter.capabilities_on(engine.EngineOptions(provider=engine.find(WEBGPU_PROVIDER))).data_types
    return tuple(name for name in DATA_TYPES if name not in there)


def _multiplied(numbers: np.ndarray, factors: np.ndarray) -> np.ndarray:
    device = adapters.request_device(adapters.choose("default", software=True))
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    buffers = [device.create_buffer_with_data(data=data, usage=usage) for data in (numbers, factors)]
    pipeline = device.create_compute_pipeline(
        layout="auto", compute={"module": device.create_shader_module(code=SHADER), "entry_point": "main"}
    )
    entries = [{"binding": index, "resource": {"buffer": buffer}} for index, buffer in enumerate(buffers)]
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
    compute.dispatch_workgroups(len(numbers))
    compute.end()
    device.queue.submit([encoder.finish()])
    products = np.frombuffer(device.queue.read_buffer(buffers[0]), np.float32)
    device.destroy()
    return products


def with_subnormals_as_zero(array: np.ndarray) -> np.ndarray:
    """A copy of a float32 array whose subnormal numbers are zeros of their signs; other arrays as they are."""
    if array.dtype != np.float32:
        return array
    return np.where(np.abs(array) < SMALLEST_NORMAL, np.copysign(np.float32(0), array), array)
