"""``webnn-py info``, ``convert``, ``devices`` and ``completion``."""

import json
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from spec_tests.support.backends import ENGINES
from spec_tests.support.onnx_programs import program
from webnn_py.devices.wgpu.engines import load


def test_info_tells_what_a_model_is(command, model):
    kind = ("float32", ["batch", 4])
    nodes = [("MatMul", ["x", "w"], ["a"], {}), ("Relu", ["a"], ["b"], {}), ("Relu", ["b"], ["y"], {})]
    path = model(program(nodes, {"x": kind}, {"y": kind}, {"w": np.ones((4, 4), np.float32)}))
    ended = command("info", path, "--backend", "numpy").succeeded()
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
    told = command("info", picked, "--backend", "numpy", "--json").report()
    assert told["inputs"] == {"x": {"data_type": "float32", "shape": [1, 2]}}
    assert told["outputs"] == {"scores": {"data_type": "float32", "shape": [1, 4]}}
    assert told["operators"] == {"MatMul": 1}
    assert (told["nodes"], told["parameters"], told["parameter_bytes"]) == (1, 8, 32)
    assert told["memory_bytes"] == {"parameters": 32, "values": 16, "unsized": ""}
    assert (told["runs"], told["missing"], told["guessed"]) == (True, [], [])
    assert told["opsets"] == {"ai.onnx": 17}


def test_info_groups_what_is_missing(command, model):
    kind = ("float32", [2, 2])
    nodes = [("RandomUniformLike", ["x"], [f"d{index}"], {}) for index in range(5)]
    nodes += [("Sum", [f"d{index}" for index in range(5)], ["y"], {})]
    path = model(program(nodes, {"x": kind}, {"y": kind}))
    ended = command("info", path, "--backend", "numpy")
    assert ended.status == 0
    assert "runs here   no, on numpy (" in ended.out
    names = "'RandomUniformLike of d0', 'RandomUniformLike of d1', 'RandomUniformLike of d2', …"
    assert f"\n  5 nodes of RandomUniformLike ({names}): the operator is not supported" in ended.out
    (group,) = command("info", path, "--backend", "numpy", "--json").report()["missing"]
    assert (group["operator"], group["count"], len(group["subjects"])) == ("RandomUniformLike", 5, 3)


def test_info_guesses_one_size_for_one_name(command, model):
    picture = ("float32", ["batch", 3, "height", "width"])
    path = model(program([("Add", ["a", "b"], ["y"], {})], {"a": picture, "b": picture}, {"y": picture}))
    told = command("info", path, "--backend", "numpy", "--json").report()
    assert told["guessed"] == ["batch=1", "height=224", "width=224"]
    assert told["shapes"] == {"a": [1, 3, 224, 224], "b": [1, 3, 224, 224]}


def test_a_converted_model_has_what_was_fixed(command, doubled, tmp_path):
    out = tmp_path / "fixed.onnx"
    ended = command("convert", doubled, out, "--shape", "rows=2").succeeded()
    assert ended.out.startswith(f"{out}: 1 node of 1, ")
    told = command("run", out, "--input", "1", "--compare", "onnxruntime", "--json").report()
    assert told["outputs"]["y"]["shape"] == [2, 3]
    assert told["differences"]["y"]["largest"] == 0


def test_frozen_inputs_are_no_inputs_of_a_converted_model(command, of_node, tmp_path):
    path = of_node("Add", ["a", "b"], ("float32", [2]))
    out = tmp_path / "frozen.onnx"
    told = command("convert", path, out, "--value", "b=2.5", "--json").report()
    assert (told["nodes_before"], told["nodes"], told["bytes"]) == (1, 1, out.stat().st_size)
    assert [item.name for item in onnx.load(out).graph.input] == ["a"]
    assert command("run", out, "--input", "1", "--json").report()["outputs"]["y"]["mean"] == 3.5


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


def test_weights_that_no_file_can_hold_go_beside_it(command, model, tmp_path, largest_file):
    largest_file(4000)
    kind = ("float32", [1000])
    path = model(
        program([("Add", ["x", "w"], ["y"], {})], {"x": kind}, {"y": kind}, {"w": np.ones(1001, np.float32)[1:]})
    )
    out = tmp_path / "out.onnx"
    for limit, files in ((4000, 1), (3999, 2), (3999, 2)):
        largest_file(limit)
        assert command("convert", path, out, "--overwrite").status == 0
        assert len([*tmp_path.glob("out.*")]) == files
        assert command("run", out, "--input", "1", "--json").report()["outputs"]["y"]["mean"] == 2
    assert (tmp_path / "out.onnx.data").stat().st_size == 4000


@pytest.mark.usefixtures("no_adapters")
@pytest.mark.parametrize("as_json", [True, False])
def test_devices_are_listed_and_those_that_cannot_be_had_say_why(as_json, command):
    ended = command("devices", *(["--json"] if as_json else []))
    assert ended.status == 0
    if as_json:
        found = {item["backend"]: item for item in json.loads(ended.out)["devices"]}
        assert found["numpy"]["driver"].startswith("numpy ")
        assert found["wgpu"]["adapter"] is None
        assert found["wgpu"]["problem"].startswith("no adapter for WebGPU")
    else:
        lines = ended.out.splitlines()
        assert lines[0].split() == ["backend", "adapter", "driver", "features"]
        assert ["wgpu", "none", "no", "adapter"] in [line.split()[:4] for line in lines]


@pytest.mark.parametrize("engine", ENGINES)
def test_devices_are_listed_with_their_engines(engine, command):
    drivers = [item["driver"] for item in json.loads(command("devices", "--json").out)["devices"] if item["driver"]]
    assert any(f", {load(engine).title}" in driver for driver in drivers)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_runs_on_the_engine_that_is_named(engine, command, doubled):
    ended = command("run", doubled, "--shape", "rows=1", "--gpu-engine", engine).succeeded()
    assert load(engine).title in ended.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_gets_a_script_that_knows_commands_and_options(shell, command):
    ended = command("completion", shell).succeeded()
    for word in ("run", "convert", "--save-outputs", "--compatibility"):
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
    command("run", path, "--backend", "numpy", "--shape", "s=1").assert_refused(
        "input 's' is sequence, which cannot be given here"
    )


def test_a_result_that_onnxruntime_cannot_load_is_not_written(command, model, tmp_path):
    """Reshape to rows of 1,600: other counts are no multiples."""
    kind = ("float32", ["n"])
    nodes = [("Reshape", ["x", "shape"], ["r"], {}), ("MatMul", ["r", "w"], ["y"], {})]
    weights = {"shape": np.array([-1, 1600]), "w": np.ones((1600, 2), np.float32)}
    path = model(program(nodes, {"x": kind}, {"y": ("float32", ["rows", 2])}, weights))
    out = tmp_path / "out.onnx"
    ended = command("convert", path, out, "--shape", "n=16")
    ended.assert_refused("webnn-py convert: nothing is written: onnx", 1)
    assert "does not accept the result" in ended.err
    assert [item.name for item in tmp_path.iterdir()] == ["model.onnx"]
    out.write_bytes(b"precious")
    assert command("convert", path, out, "--shape", "n=16", "--overwrite").status == 1
    assert out.read_bytes() == b"precious"
    assert command("convert", path, out, "--shape", "n=3200", "--overwrite").status == 0


def test_what_the_model_itself_has_wrong_is_a_note(command, model, tmp_path):
    kind = ("float32", [2])
    proto = onnx.load_model_from_string(program([("Relu", ["x"], ["y"], {})], {"x": kind}, {"y": kind}))
    proto.graph.node.add(op_type="Strange", domain="nobody", input=["x"], output=["z"])
    proto.graph.output.add(name="z", type=proto.graph.output[0].type)
    proto.opset_import.add(domain="nobody", version=1)
    path = model(proto.SerializeToString())
    ended = command("convert", path, tmp_path / "out.onnx").succeeded()
    assert f"  onnxruntime accepts neither it nor {path}: " in ended.out


def test_data_beside_a_result_are_checked_too(command, model, tmp_path, monkeypatch, largest_file):
    largest_file(3999)
    kind = ("float32", [1000])
    path = model(program([("Add", ["x", "w"], ["y"], {})], {"x": kind}, {"y": kind}, {"w": np.ones(1000, np.float32)}))
    monkeypatch.setattr(
        "webnn_py.command.convert.load_refusal", lambda path: None if path.name == "model.onnx" else "no"
    )
    assert command("convert", path, tmp_path / "out.onnx").status == 1
    assert [item.name for item in tmp_path.iterdir()] == ["model.onnx"]


def test_without_onnxruntime_the_checker_alone_looks(command, doubled, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert command("convert", doubled, tmp_path / "out.onnx").status == 0


def test_a_model_that_does_not_fit_the_guessed_sizes_says_so(command, model):
    kind = {"a": ("float32", ["n"]), "b": ("float32", ["n"])}
    nodes = [("Concat", ["a", "b"], ["c"], {"axis": 0}), ("Reshape", ["c", "s"], ["y"], {})]
    path = model(program(nodes, kind, {"y": ("float32", [7])}, {"s": np.array([7])}))
    told = command("info", path, "--backend", "numpy").out
    assert "runs here   no" in told
    assert "  tried with guessed sizes, --shape n=1; give those that the model is made for\n" in told


def test_all_obstacles_are_told_at_once(command, model):
    kind = ("float64", ["n", 3])
    nodes = [("RandomUniformLike", ["x"], ["a"], {}), ("NonZero", ["x"], ["y"], {}), ("Relu", ["a"], ["z"], {})]
    path = model(program(nodes, {"x": kind}, {"y": ("int64", [2, "m"]), "z": kind}))
    told = command("info", path, "--backend", "numpy").out
    for text in ("float64 as float32", "RandomUniformLike", "NonZero"):
        assert text in told


@pytest.mark.parametrize("shape", [["n"], [2], None])
@pytest.mark.parametrize("names", [["text"], ["number", "text"], ["text", "number"]])
def test_run_refuses_strings_before_it_asks_for_shapes(command, model, names, shape):
    kinds = {name: ("string" if name == "text" else "float32", shape) for name in names}
    nodes = [("Identity", [name], [f"{name} again"], {}) for name in names]
    path = model(program(nodes, kinds, {f"{name} again": kind for name, kind in kinds.items()}))
    ended = command("run", path, "--backend", "numpy")
    reason = "input 'text' is string; WebNN has no tensors of strings, so this cannot run"
    assert (ended.status, ended.err) == (2, f"webnn-py run: {reason}\n")


def test_float64_is_narrowed_unasked_and_that_is_said(command, of_node):
    path = of_node("Add", ["x", "x"], ("float64", [2]))
    ended = command("run", path, "--input", "x=3", "--backend", "numpy", "--compare", "onnxruntime").succeeded()
    assert "types   float64 as float32\n" in ended.out
    assert "runs here   yes, float64 as float32, on numpy" in command("info", path, "--backend", "numpy").out


def test_memory_that_cannot_be_told_says_why(command, model):
    kind = ("float32", [4])
    path = model(program([("NonZero", ["x"], ["places"], {})], {"x": kind}, {"places": ("int64", [1, "n"])}))
    told = command("info", path, "--backend", "numpy").out
    assert (
        "memory      parameters 0 bytes; the memory of values is unknown, since the shape of 'places' is not known"
        in told
    )
    assert command("info", path, "--backend", "numpy", "--json").report()["memory_bytes"]["unsized"] == "places"


def test_numbers_of_forests_and_linear_models_are_parameters(command, model):
    options = {"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.5], "targets": 1, "domain": "ai.onnx.ml"}
    nodes = [("LinearRegressor", ["x"], ["y"], options)]
    path = model(program(nodes, {"x": ("float32", [1, 3])}, {"y": ("float32", [1, 1])}))
    assert "parameters  4 (16 bytes)\n" in command("info", path, "--backend", "numpy").out


def test_names_in_reasons_are_whole(command, of_node):
    name = f"a{'long' * 40}name"
    path = of_node("NonZero", [name], ("float32", [2]), ("int64", [1, "n"]))
    assert f"; freeze input '{name}', by --value\n" in command("info", path, "--backend", "numpy").out


def test_a_folder_for_browsers_says_what_was_narrowed(command, of_node, tmp_path):
    path = of_node("Add", ["x", "x"], ("float64", [2]))
    ended = command("convert", path, tmp_path / "folder", "--js").succeeded()
    assert ended.out.endswith("\n  float64 as float32\n")
