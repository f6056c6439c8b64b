"""``webnn-py info``, ``convert``, ``devices`` and ``completion``."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from spec_tests.support.onnx_programs import program
from webnn_py.device import registry


def test_info_tells_what_a_model_is(command, model):
    kind = ("float32", ["batch", 4])
    nodes = [("MatMul", ["x", "w"], ["a"], {}), ("Relu", ["a"], ["b"], {}), ("Relu", ["b"], ["y"], {})]
    path = model(program(nodes, {"x": kind}, {"y": kind}, {"w": np.ones((4, 4), np.float32)}))
    ended = command("info", path, "--backend", "numpy")
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith(f"model       {path}, ")
    assert lines[1] == "opsets      ai.onnx 17 (file format 8)"
    assert "parameters  16 (64 bytes)" in lines
    assert "  x  float32 [batch, 4]" in lines
    assert "  y  float32 [batch, 4]" in lines
    assert "operators   3 nodes" in lines
    assert "  Relu 2, MatMul 1" in lines
    assert "memory      about 96 bytes: parameters 64 bytes, values at most 32 bytes" in lines
    assert lines[-2].startswith("runs here   yes, on numpy (")
    assert lines[-1] == "  tried with guessed sizes; change them with --shape batch=1"


def test_info_as_json_has_all_of_it(command, picked):
    told = json.loads(command("info", picked, "--backend", "numpy", "--json").out)
    assert told["inputs"] == {"x": {"data_type": "float32", "shape": [1, 2]}}
    assert told["outputs"] == {"scores": {"data_type": "float32", "shape": [1, 4]}}
    assert told["operators"] == {"MatMul": 1}
    assert (told["nodes"], told["parameters"], told["parameter_bytes"]) == (1, 8, 32)
    assert told["memory_bytes"] == {"parameters": 32, "values": 16}
    assert (told["runs"], told["missing"], told["guessed"]) == (True, [], [])
    assert told["opsets"] == {"ai.onnx": 17}


def test_info_groups_what_is_missing(command, model):
    kind = ("float32", [2, 2])
    nodes = [("Bernoulli", ["x"], [f"d{index}"], {}) for index in range(5)]
    nodes += [("Sum", [f"d{index}" for index in range(5)], ["y"], {})]
    path = model(program(nodes, {"x": kind}, {"y": kind}))
    ended = command("info", path, "--backend", "numpy")
    assert ended.status == 0
    assert "runs here   no, on numpy (" in ended.out
    assert "  Bernoulli × 5: the operator is not supported" in ended.out
    assert "      node 'Bernoulli of d0' (Bernoulli, opset 17)" in ended.out
    assert "and 2 more" in ended.out
    (group,) = json.loads(command("info", path, "--backend", "numpy", "--json").out)["missing"]
    assert (group["operator"], group["count"], len(group["subjects"])) == ("Bernoulli", 5, 3)


def test_info_guesses_one_size_for_one_name(command, model):
    picture = ("float32", ["batch", 3, "height", "width"])
    path = model(program([("Add", ["a", "b"], ["y"], {})], {"a": picture, "b": picture}, {"y": picture}))
    told = json.loads(command("info", path, "--backend", "numpy", "--json").out)
    assert told["guessed"] == ["batch=1", "height=224", "width=224"]
    assert told["shapes"] == {"a": [1, 3, 224, 224], "b": [1, 3, 224, 224]}


def test_a_converted_model_has_what_was_fixed(command, doubled, tmp_path):
    out = tmp_path / "fixed.onnx"
    ended = command("convert", doubled, out, "--shape", "rows=2")
    assert ended.status == 0, ended.err
    assert ended.out.startswith(f"{out}: 1 node of 1, ")
    told = json.loads(command("run", out, "--input", "ones", "--compare", "onnxruntime", "--json").out)
    assert told["outputs"]["y"]["shape"] == [2, 3]
    assert told["differences"]["y"]["largest"] == 0


def test_frozen_inputs_are_no_inputs_of_a_converted_model(command, model, tmp_path):
    kind = ("float32", [2])
    path = model(program([("Add", ["a", "b"], ["y"], {})], {"a": kind, "b": kind}, {"y": kind}))
    out = tmp_path / "frozen.onnx"
    told = json.loads(command("convert", path, out, "--value", "b=2.5", "--json").out)
    assert (told["nodes_before"], told["nodes"], told["bytes"]) == (1, 1, out.stat().st_size)
    assert [item.name for item in onnx.load(out).graph.input] == ["a"]
    assert json.loads(command("run", out, "--input", "ones", "--json").out)["outputs"]["y"]["mean"] == 3.5


def test_a_file_is_not_overwritten_unasked(command, doubled, tmp_path):
    out = tmp_path / "out.onnx"
    out.write_bytes(b"precious")
    ended = command("convert", doubled, out)
    assert (ended.status, out.read_bytes()) == (2, b"precious")
    assert "exists; --overwrite replaces it" in ended.err
    assert command("convert", doubled, out, "--overwrite").status == 0
    assert onnx.load(out).graph.node[0].op_type == "Add"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["model.onnx", "out.onnx"]


def test_where_no_file_can_be_is_told(command, doubled, tmp_path):
    assert "is no folder" in command("convert", doubled, tmp_path / "missing" / "out.onnx").err
    assert command("convert", doubled, tmp_path, "--overwrite").status == 2


def test_weights_that_no_file_can_hold_go_beside_it(command, model, tmp_path, monkeypatch):
    monkeypatch.setattr("webnn_py.command.convert.LARGEST_FILE", 4000)
    kind = ("float32", [1000])
    path = model(
        program([("Add", ["x", "w"], ["y"], {})], {"x": kind}, {"y": kind}, {"w": np.ones(1001, np.float32)[1:]})
    )
    out = tmp_path / "out.onnx"
    for limit, files in ((4000, 1), (3999, 2), (3999, 2)):
        monkeypatch.setattr("webnn_py.command.convert.LARGEST_FILE", limit)
        assert command("convert", path, out, "--overwrite").status == 0
        assert len([*tmp_path.glob("out.*")]) == files
        assert json.loads(command("run", out, "--input", "ones", "--json").out)["outputs"]["y"]["mean"] == 2
    assert (tmp_path / "out.onnx.data").stat().st_size == 4000


@pytest.mark.parametrize("as_json", [True, False])
def test_devices_are_listed_and_those_that_cannot_be_had_say_why(as_json, command, monkeypatch):
    real = registry.find

    def find(name):
        if name == "wgpu":
            raise RuntimeError("no driver")
        return real(name)

    monkeypatch.setattr(registry, "find", find)
    ended = command("devices", *(["--json"] if as_json else []))
    assert ended.status == 0
    if as_json:
        found = {item["backend"]: item for item in json.loads(ended.out)["devices"]}
        assert found["numpy"]["driver"].startswith("numpy ")
        assert (found["wgpu"]["adapter"], found["wgpu"]["problem"]) == (None, "no driver")
    else:
        lines = ended.out.splitlines()
        assert lines[0].split() == ["backend", "adapter", "driver", "features"]
        assert ["wgpu", "none", "no", "driver"] in [line.split() for line in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_gets_a_script_that_knows_commands_and_options(shell, command):
    ended = command("completion", shell)
    assert ended.status == 0, ended.err
    for word in ("run", "convert", "--save-outputs", "--time-limit"):
        assert word.removeprefix("--") in ended.out


def test_sequences_among_inputs_are_told_of(command, model):
    graph = helper.make_graph(
        [helper.make_node("SequenceAt", ["s", "i"], ["y"])],
        "sequence",
        [
            helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    assert "runs here   no" in command("info", path, "--backend", "numpy").out
    ended = command("run", path, "--backend", "numpy", "--shape", "s=1")
    assert ended.status == 2
    assert "input 's' is sequence, which cannot be given here" in ended.err
