"""Inputs and outputs that stay on the GPU: the sample of onnxruntime #17480, in Python, step by step.

Needs an adapter for WebGPU, which may be a software one: ``webnn-py devices`` lists them.
"""

import numpy as np
import trio
import wgpu
from onnx import TensorProto, helper

import webnn_py
from webnn_py.runtime import Environment, Tensor, TensorLocation

IMAGE = [1, 224, 224, 3]


def make_model() -> bytes:
    """An image and its negative, as an ONNX file."""
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Neg", ["input_image:0"], ["output_image:0"])],
        "my_model",
        [helper.make_tensor_value_info("input_image:0", kind, IMAGE)],
        [helper.make_tensor_value_info("output_image:0", kind, IMAGE)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(model.SerializeToString())


async def from_host_to_host(env: Environment, model: bytes, image: np.ndarray) -> None:
    """Step 1 to 4, as without IO binding."""
    async with await env.create_session(model) as session:
        results = await session.run({"input_image:0": image})
        report("host to host", results["output_image:0"].data, image)


async def from_gpu_to_gpu(env: Environment, model: bytes, image: np.ndarray, device: wgpu.GPUDevice) -> None:
    """Step 2.A, an input in a GPU buffer, and step 2.B, an output in one that was allocated before."""
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    input_buffer = device.create_buffer_with_data(data=image, usage=usage)
    output_buffer = device.create_buffer(size=image.nbytes, usage=usage)
    feed = Tensor.from_gpu_buffer(input_buffer, data_type="float32", dims=IMAGE)
    fetch = Tensor.from_gpu_buffer(output_buffer, data_type="float32", dims=IMAGE)
    async with await env.create_session(model) as session:
        await session.run({"input_image:0": feed}, {"output_image:0": fetch})
        await env.drain()  # from here on everything is plain wgpu
        data = np.frombuffer(device.queue.read_buffer(output_buffer), np.float32).reshape(IMAGE)
        report("GPU to GPU", data, image)
    feed.dispose()
    fetch.dispose()
    input_buffer.destroy()  # they were the user's all the time
    output_buffer.destroy()


async def chosen_by_the_session(env: Environment, model: bytes, image: np.ndarray) -> None:
    """Step 1.A and 1.B: outputs of shapes that need not be known stay on the GPU, all of them or some."""
    locations: tuple[TensorLocation | dict[str, TensorLocation], ...] = ("gpu-buffer", {"output_image:0": "gpu-buffer"})
    for location in locations:
        async with await env.create_session(model, preferred_output_location=location) as session:
            negative = (await session.run({"input_image:0": image}))["output_image:0"]
            positive = (await session.run({"input_image:0": negative}))["output_image:0"]
            report(f"a {positive.location} of {positive.gpu_buffer.size} bytes", -await positive.get_data(), image)
            negative.dispose()
            await positive.get_data(release=True)


def report(what: str, data: np.ndarray, image: np.ndarray) -> None:
    """Print whether the data are the image's negative."""
    print(f"{what}: {'right' if np.array_equal(data, -image) else 'wrong'}")


async def main() -> None:
    """Every step, on one GPU device of the user's."""
    device = wgpu.gpu.request_adapter_sync(power_preference="high-performance").request_device_sync()
    image = np.random.default_rng(1).random(IMAGE, np.float32)
    async with webnn_py.open_ml() as ml, Environment(ml, gpu_device=device) as env:
        model = make_model()
        await from_host_to_host(env, model, image)
        await from_gpu_to_gpu(env, model, image, device)
        await chosen_by_the_session(env, model, image)


if __name__ == "__main__":
    trio.run(main)
