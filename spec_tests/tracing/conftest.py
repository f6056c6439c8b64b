"""Fixtures of the tests of traces."""

import onnx
import pytest

from spec_tests.support.drawing import build_add_one
from spec_tests.support.onnx_programs import program as onnx_program

F32 = {"data_type": "float32", "shape": [1]}


@pytest.fixture
def model(tmp_path):
    """Return the path of a model of one addition, x + x."""
    kind = ("float32", [2])
    proto = onnx.load_model_from_string(onnx_program([("Add", ["x", "x"], ["y"], {})], {"x": kind}, {"y": kind}))
    proto.ir_version = 8
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.fixture
async def program(context):
    """Return a graph, a writable buffer for its input and a readable one for its output."""
    graph = await build_add_one(context, [1])
    x = await context.create_buffer(**F32, writable=True)
    return graph, x, await context.create_buffer(**F32, readable=True)
