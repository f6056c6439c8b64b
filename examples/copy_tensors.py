"""Copies between host and device that depend on no session: the sample of onnxruntime #26450, in Python.

The environment copies before its first session and after its last. The device is opened by the first copy.

    python examples/copy_tensors.py [backend]
"""

import sys

import numpy as np
import trio

import webnn_py
from webnn_py.runtime import Environment, Tensor


async def main(*backend: str) -> None:
    """The operations that ONNX Runtime GenAI calls CopyCpuToDevice, CopyDeviceToCpu, CopyFrom, Zero and Cast."""
    async with webnn_py.open_ml() as ml, Environment(ml, *backend) as env:
        print("sessions:", len(env.sessions), "device:", env.device)
        tokens = Tensor(np.array([[101, 7592, 2088, 102]], np.int32))
        on_device = await env.create_tensor(data_type="int32", dims=[1, 4])
        mask = await env.create_tensor(data_type="int32", dims=[1, 4])
        await env.copy_tensors([tokens, Tensor(np.ones((1, 4), np.int32))], [on_device, mask])

        sequence = await env.create_tensor(data_type="int32", dims=[1, 8])
        await sequence.copy_from(on_device)
        await sequence.copy_from(on_device, source_offset=1, destination_offset=4, count=2)
        await env.zero(mask)
        floats = await env.cast(sequence, "float32")

        back, zeros = Tensor(np.zeros((1, 8), np.float32)), Tensor(np.ones((1, 4), np.int32))
        await env.copy_tensors([floats, mask], [back, zeros])
        print("sequence:", *back.data[0].astype(int))
        print("mask:", *zeros.data[0])
        print("host copies:", env.statistics().host_copies)
        for tensor in (on_device, mask, sequence, floats):
            tensor.dispose()


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:2])
