"""Weights of four bits in a context that has the proposal "int4": they stay that, and say the same as without it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import webnn_py
from spec_tests.onnx_models.single_node import assert_same, run, run_onnxruntime
from spec_tests.support.backends import BACKENDS
from webnn_py import MLGraphBuilder
from webnn_py.graph import Constant
from webnn_py.onnx_models import OnnxModel
from webnn_py.onnx_models.rules.conversion import packed_in_bytes

rng = np.random.default_rng(11)


def floats(*shape):
    return rng.uniform(0.1, 1, shape).astype(np.float32)


def model(nodes, tensors, length):
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, length])],
        [onnx.ValueInfoProto(name="y")],
        tensors,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def product(points, length=80):
    """A product with 70 rows of three blocks of 32, the last of which may end early."""
    tensors = [
        numpy_helper.from_array(rng.integers(0, 256, (70, 3, 16), np.uint8), "b"),
        numpy_helper.from_array(floats(70 * 3), "scales"),
    ]
    if points:
        tensors.append(numpy_helper.from_array(rng.integers(0, 256, 70 * 2, np.uint8), "points"))
    names = ["x", *(tensor.name for tensor in tensors)]
    sizes = {"K": length, "N": 70, "bits": 4, "block_size": 32}
    return model([helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **sizes)], tensors, length)


def dequantized(kind, points):
    """A product with weights of 64 by 68 in blocks of 16 rows."""
    low = -8 if kind == TensorProto.INT4 else 0
    tensors = [
        helper.make_tensor("w", kind, [64, 68], rng.integers(low, low + 16, 64 * 68).tolist()),
        numpy_helper.from_array(floats(4, 68), "scales"),
    ]
    if points:
        tensors.append(helper.make_tensor("points", kind, [4, 68], rng.integers(low, low + 16, 4 * 68).tolist()))
    names = [tensor.name for tensor in tensors]
    nodes = [
        helper.make_node("DequantizeLinear", names, ["weights"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "weights"], ["y"]),
    ]
    return model(nodes, tensors, 64)


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
            (y,) = OnnxModel.load(data).convert(builder).values()
            constants = [value for value in builder._values.values() if isinstance(value, Constant)]
            assert any(value.descriptor.data_type in ("int4", "uint4") for value in constants), name
            assert not any(value.descriptor.data_type in ("int8", "uint8") for value in constants), name
            builder.destroy()
            feeds = {"x": rng.uniform(-1, 1, (3, length)).astype(np.float32)}
            other = await ml.create_context(backend=backend)
            assert_same(await run(other, data, feeds), run_onnxruntime(data, feeds), relative=1e-4, absolute=1e-4)
            assert y.shape[0] == 3, name


def test_bytes_are_packed_from_the_first_element_on():
    assert packed_in_bytes(np.array([[-8, 7, -1]], np.int8)).tobytes() == bytes([0x78, 0x0F])
