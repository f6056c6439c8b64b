"""Weights of four bits in a context that has the proposal "int4": they stay that, and say the same as without it."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webnn_py
from spec_tests.onnx_models.single_node import Random, assert_same, parsed, run, run_onnxruntime
from spec_tests.support.backends import BACKENDS
from webnn_py import MLGraphBuilder
from webnn_py.core.graph import Constant
from webnn_py.devices.composites.block_quantized import packed_in_bytes
from webnn_py.onnx_models import OnnxModel

random = Random(11, 0.1, 1)


def product(*, points, length=80):
    """Return a product with 70 rows of three blocks of 32, the last of which may end early."""
    tensors = {"b": random.integers("uint8", 70, 3, 16), "scales": random.floats(70 * 3)}
    if points:
        tensors["points"] = random.integers("uint8", 70 * 2)
    node = f"com.microsoft.MatMulNBits <K = {length}, N = 70, bits = 4, block_size = 32> (x, {', '.join(tensors)})"
    return parsed(f"(float[3,70] y) {{ y = {node} }}", inputs=f"float[3,{length}] x", opset=21, **tensors)


def dequantized(kind, *, points):
    """Return a product with weights of 64 by 68 in blocks of 16 rows."""
    low, kind = -8 if kind == TensorProto.INT4 else 0, helper.tensor_dtype_to_np_dtype(kind)
    tensors = {"w": random.rng.integers(low, low + 16, (64, 68)).astype(kind), "scales": random.floats(4, 68)}
    if points:
        tensors["points"] = random.rng.integers(low, low + 16, (4, 68)).astype(kind)
    weights = f"weights = DequantizeLinear <axis = 0, block_size = 16> ({', '.join(tensors)})"
    text = f"(float[3,68] y) {{ {weights}  y = MatMul (x, weights) }}"
    return parsed(text, inputs="float[3,64] x", opset=21, **tensors)


MODELS = {
    "MatMulNBits": (product(points=False, length=96), 96),
    "MatMulNBits, points": (product(points=True), 80),
    "INT4": (dequantized(TensorProto.INT4, points=False), 64),
    "UINT4, points": (dequantized(TensorProto.UINT4, points=True), 64),
}


@pytest.mark.parametrize("backend", BACKENDS)
async def test_weights_stay_of_four_bits(backend):
    async with webnn_py.open_ml(experimental={"int4"}) as ml:
        context = await ml.create_context(backend=backend)
        for name, (data, length) in MODELS.items():
            builder = MLGraphBuilder(context)
            outputs = OnnxModel.load(data).convert(builder)
            (y,) = outputs.values()
            nodes = builder.graph_of("a test", outputs).nodes
            constants = [value for node in nodes for value in node.inputs if isinstance(value, Constant)]
            assert any(value.descriptor.data_type in ("int4", "uint4") for value in constants), name
            assert not any(value.descriptor.data_type in ("int8", "uint8") for value in constants), name
            builder.destroy()
            feeds = {"x": random.floats(3, length)}
            other = await ml.create_context(backend=backend)
            assert_same(await run(other, data, feeds), run_onnxruntime(data, feeds), relative=1e-4, absolute=1e-4)
            assert y.shape[0] == 3, name


def test_bytes_are_packed_from_the_first_element_on():
    assert packed_in_bytes(np.array([[-8, 7, -1]], np.int8)).tobytes() == bytes([0x78, 0x0F])
