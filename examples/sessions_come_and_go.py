"""Create, release, create again: the sample of onnxruntime #27634, in Python.

There, the second session fails with "WebGPU device lost (2): Device was destroyed". Here a released session's device is
forgotten at once, and the next session opens a fresh one, or finds the old one where it is preserved.

    python examples/sessions_come_and_go.py [backend]
"""

import sys

import numpy as np
import trio
from onnx import TensorProto, helper, numpy_helper

import webnn_py
from webnn_py.runtime import Environment


def make_model(factor: float) -> bytes:
    """A product, y = x · factor, as an ONNX file."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "factor"], ["y"])],
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        [numpy_helper.from_array(np.array([factor], np.float32), "factor")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(model.SerializeToString())


async def use_models(env: Environment) -> None:
    """Use one model after the other, and unload each when the job is done."""
    x = np.array([1, 2, 3], np.float32)
    for factor in (2, 3, 5):
        session = await env.create_session(make_model(factor))
        results = await session.run({"x": x})
        await session.release()
        print(*results["y"].data, "device kept" if env.device else "device gone")


async def main(*backend: str) -> None:
    """With a device that comes and goes with its sessions, and with one that is preserved."""
    async with webnn_py.open_ml() as ml:
        async with Environment(ml, *backend) as env:
            await use_models(env)
        async with Environment(ml, *backend, preserve_device=True) as env:
            await use_models(env)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:2])
