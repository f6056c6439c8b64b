"""The command, called in this process on small models."""

import io
import json
from types import SimpleNamespace

import attrs
import numpy as np
import onnx
import pytest

from spec_tests.support.onnx_programs import program
from webnn_py import cli
from webnn_py.command import progress
from webnn_py.runtime import InferenceSession


@attrs.frozen
class Ended:
    """The result of a command: its name, its status and its output."""

    name: str
    status: int
    out: str
    err: str

    def succeeded(self):
        assert self.status == 0, self.err
        return self

    def report(self):
        """Return what ``--json`` has printed."""
        return json.loads(self.succeeded().out)

    def assert_refused(self, text, status=2):
        """Check that the command has told the reason in one line, and nothing else."""
        assert self.status == status, self
        assert text in self.err
        assert self.err.startswith(f"webnn-py {self.name}: ")
        assert self.err.count("\n") == 1, self.err
        assert status == 1 or "(--debug shows where)" not in self.err, self.err
        assert self.out == ""


@pytest.fixture
def command(capsys):
    """Call the command with these arguments."""

    def call(*arguments):
        try:
            status = cli.main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse's
            status = end.code
        written = capsys.readouterr()
        return Ended(arguments[0], status, written.out, written.err)

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
def of_node(model):
    """Write a model of one node, all of whose inputs are of one kind, and its output "y", too, unless that is given."""

    def write(operator, inputs, kind, output=None, name="model.onnx"):
        nodes = [(operator, inputs, ["y"], {})]
        return model(program(nodes, dict.fromkeys(inputs, kind), {"y": output or kind}), name)

    return write


@pytest.fixture(params=["run", "info", "convert"])
def read_by(request, command, tmp_path):
    """Call each command that reads a model."""

    def call(path):
        return command(request.param, path, *([tmp_path / "out.onnx"] if request.param == "convert" else []))

    return call


@pytest.fixture
def largest_file(monkeypatch):
    """A function that sets the bytes from which on weights go beside a model."""
    return lambda byte_length: monkeypatch.setattr("webnn_py.command.convert.LARGEST_FILE", byte_length)


@pytest.fixture
def run_by(monkeypatch):
    """A function that sets what runs a session."""
    return lambda function: monkeypatch.setattr(InferenceSession, "run", function)


@pytest.fixture
def doubled(of_node):
    """y = x + x, of any number of rows of three."""
    return of_node("Add", ["x", "x"], ("float32", ["rows", 3]))


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


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """The stream that bars are shown on."""
    stream = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))  # pytest sets the real one itself
    return stream
