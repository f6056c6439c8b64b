"""The commands write traces of what they have run."""

import json
import re

import onnx
import pytest

from spec_tests.support.onnx_programs import program
from spec_tests.support.scripts import run
from spec_tests.support.trace_format import check_document, of_phase
from webnn_py import cli
from webnn_py.javascript import arguments
from webnn_py.javascript.program import Program, run_program

SCRIPT = """
const context = await navigator.ml.createContext();
const tensor = await context.createTensor({dataType: "float32", shape: [2], writable: true, readable: true});
context.writeTensor(tensor, new Float32Array([1, 2]));
console.log((await context.readTensor(tensor)).byteLength);
tensor.destroy();
await new Promise(resolve => setTimeout(resolve, 1));
"""


def events_of(path):
    return check_document(json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture
def model(tmp_path):
    kind = ("float32", [2])
    proto = onnx.load_model_from_string(program([("Add", ["x", "x"], ["y"], {})], {"x": kind}, {"y": kind}))
    proto.ir_version = 8
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_run_traces_the_model_and_its_end(model, backend, tmp_path, capsys):
    path = tmp_path / "run.json"
    status = cli.main(["run", str(model), "--trace", str(path), "--backend", backend, "--repeat", "2"])
    assert status == 0, capsys.readouterr().err
    operations = of_phase(events_of(path), "X", "operation")
    names = [event["name"] for event in operations]
    assert names.count("dispatch") == 3
    assert names[-1] == "release"


@pytest.mark.parametrize("name", ["trace.txt", "nowhere/trace.json", "."])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(model, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", str(model), "--trace", name])
    assert ended.value.code == 2
    assert "--trace" in capsys.readouterr().err


def test_js_traces_a_program(tmp_path, capsys):
    (tmp_path / "program.mjs").write_text(SCRIPT, encoding="utf-8")
    path = tmp_path / "js.json"
    assert run_program(Program(tmp_path / "program.mjs", "quickjs", "numpy", trace=path))
    assert capsys.readouterr().out == "8\n"
    events = events_of(path)
    kinds = [event["name"] for event in of_phase(events, "X", "operation")]
    assert kinds == ["create_buffer", "write_buffer", "read_buffer", "release"]
    assert {"script", "timer"} <= {event["name"] for event in of_phase(events, "X", "task")}


def test_a_trace_that_can_no_longer_be_written_is_told_in_a_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "program.js").write_text("1", encoding="utf-8")
    monkeypatch.setattr(arguments, "check_trace_file", lambda _path: None)  # the folder is removed after that
    path = tmp_path / "gone" / "js.json"
    program = [str(tmp_path / "program.js"), "--engine", "quickjs", "--backend", "numpy"]
    assert cli.main(["js", *program, "--trace", str(path)]) == 2
    assert capsys.readouterr().err == f"webnn-py js: --trace {path}: No such file or directory\n"


async def test_wpt_traces_each_test_file(tmp_path):
    result = await run("webnn/tensors.any.js", traces=tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == re.sub("[/?]", "_", result.id) + ".json"
    assert of_phase(events_of(path), "X", "operation")
