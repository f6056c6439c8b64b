"""A WGSL pass of one's own between two dispatches, without copies through the host.

A graph blurs a picture, a compute shader of ours draws a circle into it where it lies, and the graph blurs it again.
Needs an adapter for WebGPU, which may be a software one: ``webnn-py devices`` lists them.
"""

import sys

import numpy as np
import trio
import wgpu

import webnn_py
from webnn_py.devices.wgpu import interop

SIZE = 24
CIRCLE = f"""
@group(0) @binding(0) var<storage, read_write> picture: array<f32>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let place = vec2<f32>(id.xy) - {SIZE / 2 - 0.5};
  if (id.x < {SIZE}u && id.y < {SIZE}u && abs(length(place) - {SIZE / 3}) < 1.0) {{
    picture[id.y * {SIZE}u + id.x] = 1.0;
  }}
}}
"""


def draw_circle(device: wgpu.GPUDevice, picture: wgpu.GPUBuffer) -> None:
    """Submit the shader: from here on everything is plain wgpu."""
    module = device.create_shader_module(label="circle", code=CIRCLE)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": picture}}]
    )
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(-(-SIZE // 8), -(-SIZE // 8))
    compute.end()
    device.queue.submit([encoder.finish()])


async def build_blur(context: webnn_py.MLContext) -> webnn_py.MLGraph:
    """A 3×3 mean."""
    builder = webnn_py.MLGraphBuilder(context)
    picture = builder.input("picture", data_type="float32", shape=[1, 1, SIZE, SIZE])
    window = builder.constant(np.full((1, 1, 3, 3), 1 / 9, np.float32))
    return await builder.build({"blurred": builder.conv2d(picture, window, padding=[1, 1, 1, 1])})


async def main() -> None:
    """Blur, draw, blur, and print what came out."""
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    device = adapter.request_device_sync()
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(gpu_device=device)
        blur = await build_blur(context)
        first, second = [
            await context.create_buffer(data_type="float32", shape=[1, 1, SIZE, SIZE], readable=True, writable=True)
            for _ in range(2)
        ]
        context.write_buffer(first, np.random.default_rng(1).random((1, 1, SIZE, SIZE), np.float32))
        context.dispatch(blur, {"picture": first}, {"blurred": second})

        picture = await interop.export_to_gpu(context, second)
        draw_circle(device, picture)
        picture.destroy()  # gives it back; without this the next dispatch would wait

        context.dispatch(blur, {"picture": second}, {"blurred": first})
        result = await context.read_buffer(first)
        shades = " .:-=+*#%@"
        for row in result[0, 0]:
            print("".join(2 * shades[min(int(value * len(shades)), len(shades) - 1)] for value in row))
        print(f"on {context.backend}; host copies: {context.statistics().host_copies}", file=sys.stderr)


if __name__ == "__main__":
    trio.run(main)
