"""Fixtures of the tests of traces."""

import onnx
import pytest

from spec_tests.support.onnx_programs import program


@pytest.fixture
def model(tmp_path):
    """Return the path of a model of one addition, x + x."""
    kind = ("float32", [2])
    proto = onnx.load_model_from_string(program([("Add", ["x", "x"], ["y"], {})], {"x": kind}, {"y": kind}))
    proto.ir_version = 8
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path
