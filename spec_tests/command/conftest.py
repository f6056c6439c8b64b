"""The command, called in this process on small models."""

import attrs
import numpy as np
import onnx
import pytest

from spec_tests.support.onnx_programs import program
from webnn_py import cli


@attrs.frozen
class Ended:
    """The result of a command: its status and its output."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(capsys):
    """Call the command with these arguments."""

    def call(*arguments):
        try:
            status = cli.main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse's
            status = end.code
        written = capsys.readouterr()
        return Ended(status, written.out, written.err)

    return call


@pytest.fixture
def model(tmp_path):
    """Write a model, and return its path."""

    def write(proto, name="model.onnx"):
        path = tmp_path / name
        parsed = onnx.load_model_from_string(proto)
        parsed.ir_version = 8  # which onnxruntime knows, too
        path.write_bytes(parsed.SerializeToString())
        return path

    return write


@pytest.fixture
def doubled(model):
    """y = x + x, of any number of rows of three."""
    kind = ("float32", ["rows", 3])
    return model(program([("Add", ["x", "x"], ["y"], {})], {"x": kind}, {"y": kind}))


@pytest.fixture
def picked(model):
    """scores = x · w: four classes of two numbers."""
    weights = np.array([[1, 0, -1, 0.5], [0, 1, 0, 0.5]], np.float32)
    return model(
        program(
            [("MatMul", ["x", "w"], ["scores"], {})],
            {"x": ("float32", [1, 2])},
            {"scores": ("float32", [1, 4])},
            {"w": weights},
        ),
        "picked.onnx",
    )
