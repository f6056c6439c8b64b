"""The commands write traces of what they have run."""

import json
import os
import re

import pytest

from spec_tests.support.scripts import run
from spec_tests.support.trace_format import check_document, of_phase
from webnn_py import cli
from webnn_py.javascript.node_program import NodeProgram, run_command

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


def test_run_traces_the_model_and_its_end(model, backend, tmp_path, capsys):
    path = tmp_path / "run.json"
    status = cli.main(["run", str(model), "--trace", str(path), "--backend", backend, "--repeat", "2"])
    assert status == 0, capsys.readouterr().err
    operations = of_phase(events_of(path), "X", "operation")
    names = [event["name"] for event in operations]
    assert names.count("dispatch") == 3
    assert names[-1] == "release"
    calls = of_phase(events_of(path), "X", "call")
    assert [event["name"] for event in calls].count("destroy()") == names.count("release")
    assert all(event["dur"] > 0 for event in calls), calls


@pytest.mark.parametrize(
    "why",
    [
        "trace.txt: 'trace.txt' does not end in .json or .html",
        "nowhere/trace.json: nowhere is no folder",
        ".: . is a folder",
        "locked.json: locked.json may not be written",
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(model, why, tmp_path, monkeypatch, capsys):
    name, told = why.split(": ")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "locked.json")
    (tmp_path / "locked.json").touch()
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", str(model), "--trace", name])
    assert ended.value.code == 2
    assert f"argument --trace: {told}" in capsys.readouterr().err


def test_run_prints_the_path_of_the_trace(model, tmp_path, capsys):
    assert cli.main(["run", str(model), "--trace", str(tmp_path / "a.html"), "--backend", "numpy"]) == 0
    assert capsys.readouterr().out.endswith(f"\ntrace   {tmp_path / 'a.html'}\n")


def traced(program, path):
    return run_command(NodeProgram("numpy", trace=path), [str(program)])


def of_folder(event, folder):
    """The place of a call, relative to a folder."""
    return event["args"]["source"].removeprefix(f"{folder}/")


def test_node_traces_a_program(tmp_path, capfd):
    (tmp_path / "program.mjs").write_text(SCRIPT, encoding="utf-8")
    path = tmp_path / "js.json"
    assert traced(tmp_path / "program.mjs", path) == 0
    assert capfd.readouterr().out == "8\n"
    events = events_of(path)
    kinds = [event["name"] for event in of_phase(events, "X", "operation")]
    assert kinds == ["create_buffer", "write_buffer", "read_buffer", "release"]


PLACES = """
import {make} from './lib/make.mjs';
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const x = builder.input('x', {dataType: 'float32', shape: [2]});
const graph = await builder.build({y: builder.relu(x)});
const given = await make(context);
async function run() {
  const made = await context.createTensor({dataType: 'float32', shape: [2], readable: true});
  for (const input of [given, given]) context.dispatch(graph, {x: input}, {y: made});
  context.dispatch(graph, {x: given}, {y: made});
  [made].forEach((tensor) => tensor.destroy());
}
await run();
eval('context.writeTensor(given, new Float32Array(2))');
given.destroy();
"""

MAKE = """export const make = async (context) =>
  await context.createTensor({dataType: 'float32', shape: [2], writable: true});
"""


def test_a_trace_has_the_line_of_the_script_that_made_each_call(tmp_path, capfd):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "make.mjs").write_text(MAKE, encoding="utf-8")
    (tmp_path / "program.mjs").write_text(PLACES, encoding="utf-8")
    path = tmp_path / "js.json"
    assert traced(tmp_path / "program.mjs", path) == 0, capfd.readouterr().err
    # Destroyed at the end of the program, which is at no line.
    calls = [event for event in of_phase(events_of(path), "X", "call") if "source" in event["args"]]
    told = [(event["name"], of_folder(event, tmp_path).partition(" in ")[::2]) for event in calls]
    assert told[:2] == [("build()", ("program.mjs:6", "")), ("create_buffer()", ("lib/make.mjs:2", "make"))]
    assert told[2:6] == [
        ("create_buffer()", ("program.mjs:9", "run")),
        *[("dispatch()", ("program.mjs:10", "run"))] * 2,
        ("dispatch()", ("program.mjs:11", "run")),
    ]
    assert told[6:] == [
        ("destroy()", ("program.mjs:12", "")),
        ("write_buffer()", ("program.mjs:15", "")),
        ("destroy()", ("program.mjs:16", "")),
    ]


async def test_wpt_traces_each_test_file(tmp_path):
    result = await run("webnn/tensors.any.js", traces=tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == re.sub("[/?]", "_", result.id) + ".json"
    events = events_of(path)
    assert of_phase(events, "X", "operation")
    sources = [event["args"]["source"] for event in of_phase(events, "X", "call") if "source" in event["args"]]
    assert {source.partition(":")[0] for source in sources} == {"/webnn/tensors.any.js"}
