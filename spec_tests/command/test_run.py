"""``webnn-py run``: what it prints, what it writes, what it compares."""

import json

import numpy as np
import pytest

from spec_tests.support.onnx_programs import program
from webnn_py.command import comparison
from webnn_py.command import run as run_module


def test_a_run_on_each_device_saves_what_the_model_computes(command, doubled, backend, tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    saved = tmp_path / "y.npz"
    ended = command(
        "run", doubled, "--input", tmp_path / "x.npy", "--backend", backend, "--save-outputs", saved
    ).succeeded()
    with np.load(saved) as outputs:
        np.testing.assert_array_equal(outputs["y"], x + x)
    lines = ended.out.splitlines()
    assert lines[0] == f"model   {doubled}"
    assert lines[1].startswith(f"device  {backend} (")
    assert lines[3].split() == ["x", "float32", "[2,", "3]", "24", "bytes", str(tmp_path / "x.npy")]
    assert lines[4].startswith("times   load ")
    assert lines[-1].split() == ["y", "float32", "[2,", "3]", "min", "0,", "mean", "5,", "max", "10"]


def test_one_file_has_the_arrays_of_several_inputs(command, of_node, tmp_path):
    path = of_node("Sub", ["a", "b"], ("float32", [2]))
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, a=np.array([5.0, 7.0]), b=np.ones(2))
    told = command("run", path, "--input", arrays, "--json").report()
    assert (told["inputs"]["a"]["source"], told["inputs"]["b"]["source"]) == (str(arrays), str(arrays))
    assert (told["outputs"]["y"]["minimum"], told["outputs"]["y"]["maximum"]) == (4, 6)
    told = command("run", path, "--input", "a=2", "--input", f"b={arrays}", "--json").report()
    assert (told["inputs"]["a"]["source"], told["outputs"]["y"]["maximum"]) == ("2", 1)


def test_an_execution_provider_is_named(command, doubled):
    pytest.importorskip("onnxruntime")
    name = "CPUExecutionProvider"
    assert name in command("run", doubled, "--shape", "rows=1", "--execution-provider", name).succeeded().out
    command("run", doubled, "--shape", "rows=1", "--execution-provider", "Abacus").assert_refused(
        f"execution_provider is 'Abacus'; the installed onnxruntime has {name}"
    )


def test_json_has_all_that_is_printed(command, doubled):
    told = command("run", doubled, "--shape", "rows=2", "--input", "x=1", "--repeat", "3", "--json").report()
    assert told["inputs"] == {"x": {"data_type": "float32", "shape": [2, 3], "source": "1"}}
    assert told["outputs"]["y"] == {
        "data_type": "float32",
        "shape": [2, 3],
        "minimum": 2,
        "mean": 2,
        "maximum": 2,
        "nans": 0,
        "infinities": 0,
    }
    assert told["times"]["runs"] == 3
    assert 0 < told["times"]["run_ms"]["p50"] <= told["times"]["run_ms"]["p90"] <= told["times"]["run_ms"]["p99"]
    assert told["differences"] is None


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (["rows", 3], "--shape rows=1"),
        (["batch", 3, "height", "width"], "--shape batch=1 --shape height=224 --shape width=224"),
        ([None, 2, None], "--shape x=1,2,16"),
        (["rows", None, 4], "--shape rows=1 --shape x=1,1,4"),
    ],
    ids=str,
)
def test_open_shapes_are_refused_with_options_that_work(shape, options, command, of_node):
    path = of_node("Add", ["x", "x"], ("float32", shape))
    ended = command("run", path, "--backend", "numpy")
    ended.assert_refused(f"), for example {options}\n")
    assert "give the open shapes (input 'x' is float32 [" in ended.err
    assert command("run", path, "--backend", "numpy", *options.split()).status == 0


def test_a_file_says_the_size_of_a_dimension_that_others_share(command, of_node, tmp_path):
    path = of_node("Add", ["a", "b"], ("float32", ["batch", "length"]))
    np.save(tmp_path / "b.npy", np.ones((2, 5), np.float32))
    ended = command("run", path, "--input", f"b={tmp_path / 'b.npy'}", "--json")
    assert json.loads(ended.out)["inputs"]["a"]["shape"] == [2, 5]
    refused = command("run", path, "--input", f"b={tmp_path / 'b.npy'}", "--shape", "a=2,6")
    assert refused.status == 2
    assert "'length' 5" in refused.err
    assert "--shape a=2,6 makes it 6" in refused.err


def test_random_inputs_depend_on_the_seed_alone(command, picked):
    one, again, other = (command("run", picked, "--seed", seed, "--json").out for seed in (1, 1, 2))
    one, again, other = (json.loads(text)["outputs"] for text in (one, again, other))
    assert one == again
    assert one != other


@pytest.mark.parametrize(("source", "low", "high"), [("random", 0, 1), ("random:3,7", 3, 7), ("9", 9, 9)])
def test_whole_numbers_are_made_within_their_bounds(source, low, high, command, of_node):
    path = of_node("Identity", ["x"], ("int32", [1000]))
    told = command("run", path, "--input", source, "--json").report()["outputs"]["y"]
    assert (told["minimum"], told["maximum"]) == (low, high)


@pytest.mark.parametrize("bounds", ["0,inf", "-inf,0", "0.5,1"])
def test_bounds_of_integers_are_whole_numbers(command, of_node, bounds):
    path = of_node("Identity", ["x"], ("int32", [2]))
    command("run", path, "--input", f"x=random:{bounds}").assert_refused("the bounds must be whole numbers")


def test_booleans_are_given_and_compared(command, of_node):
    path = of_node("Not", ["x"], ("bool", [64]))
    told = command("run", path, "--compare", "onnxruntime", "--tolerance", "0", "--json").report()
    assert told["inputs"]["x"]["data_type"] == "bool"
    assert told["differences"]["y"]["largest"] == 0
    assert 0 < told["outputs"]["y"]["mean"] < 1


def test_a_frozen_input_is_a_constant_and_told_as_one(command, model):
    inputs = {"x": ("float32", [2, 3]), "shape": ("int64", ["rank"])}
    path = model(program([("Reshape", ["x", "shape"], ["y"], {})], inputs, {"y": ("float32", None)}))
    ended = command("run", path, "--value", "shape=3,-1", "--compare", "onnxruntime").succeeded()
    assert "frozen: 3, -1" in ended.out
    assert "y  float32  [3, 2]" in ended.out
    assert "compared with onnxruntime" in ended.out


@pytest.mark.parametrize("option", ["--input", "--value"])
def test_whole_numbers_are_taken_exactly(option, command, of_node, tmp_path):
    path = of_node("Add", ["x", "zero"], ("int64", [2]))
    saved = tmp_path / "y.npz"
    ended = command(
        "run", path, option, f"x={2**53 + 1}", "--input", "zero=0", "--backend", "numpy", "--save-outputs", saved
    )
    assert ended.status == 0, ended.err
    with np.load(saved) as outputs:
        assert outputs["y"].tolist() == [2**53 + 1] * 2


def test_what_is_no_finite_number_is_counted_apart(command, of_node, tmp_path):
    path = of_node("Log", ["x"], ("float32", [4]))
    np.save(tmp_path / "x.npy", np.float32([-1, 0, 1, np.e]))
    arguments = ("run", path, "--input", tmp_path / "x.npy")
    assert "min 0, mean 0.5, max 1, 1 NaN, 1 infinite" in command(*arguments).out
    told = command(*arguments, "--json", "--compare", "onnxruntime").report()
    assert (told["outputs"]["y"]["nans"], told["outputs"]["y"]["infinities"]) == (1, 1)
    assert told["differences"]["y"]["mismatches"] == 0


def test_the_top_five_classes_are_named_by_their_labels(command, of_node, tmp_path):
    np.save(tmp_path / "x.npy", np.float32([[1, 3, -1, 2, 0, 0.5]]))
    (tmp_path / "labels.txt").write_text("cat\ndog\nfish\nhorse\nape\nowl\n", encoding="utf-8-sig")
    path = of_node("Identity", ["x"], ("float32", [1, 6]))
    arguments = ("run", path, "--input", tmp_path / "x.npy", "--labels", tmp_path / "labels.txt")
    words = ["3", "dog", "2", "horse", "1", "cat", "0.5", "owl", "0", "ape"]
    assert [word for line in command(*arguments).out.splitlines()[-5:] for word in line.split()] == words
    told = command(*arguments, "--json").report()["outputs"]["y"]["classes"]
    assert (len(told[0]), told[0][0]) == (5, {"index": 1, "label": "dog", "score": 3})


def test_labels_that_are_no_outputs_classes_are_refused(command, picked, tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\n", encoding="utf-8")
    command("run", picked, "--labels", tmp_path / "labels.txt").assert_refused(
        "--labels has 2 lines; no output has so many classes: scores [1, 4]"
    )


def test_a_difference_over_the_tolerance_ends_with_status_1(command, picked, monkeypatch):
    def off(*asked):
        theirs = comparison.run_onnxruntime(*asked)
        return {name: array + np.float32([[0, 0, 0.25, 0]]) for name, array in theirs.items()}

    monkeypatch.setattr(run_module, "run_onnxruntime", off)
    arguments = ("run", picked, "--input", "1", "--compare", "onnxruntime")
    ended = command(*arguments, "--tolerance", "0.1")
    assert ended.status == 1
    assert "largest difference 0.25, 0.25 of its largest value, at [0, 2]" in ended.out
    assert ended.err == "webnn-py run: over --tolerance 0.1: output 'scores', 0.25 of its largest value\n"
    assert command(*arguments, "--tolerance", "0.3").status == 0
    assert command(*arguments).status == 0


def test_differences_are_of_finite_numbers_and_others_are_counted():
    ours = np.float32([1, np.nan, np.inf, np.inf, 4])
    theirs = np.float32([1, np.nan, np.inf, -np.inf, 8])
    told = comparison.difference("y", ours, theirs)
    assert (told.largest, told.relative, told.place, told.mismatches) == (4, 0.5, (4,), 1)
    assert told.is_over(1)
    assert not comparison.difference("y", ours[:3], theirs[:3]).is_over(0)
    assert comparison.difference("y", ours[:0], theirs[:0]).largest == 0


def test_outputs_of_any_name_are_saved(command, model, tmp_path):
    kind = ("float32", [2])
    nodes = [("Neg", ["x"], ["file"], {}), ("Abs", ["x"], ["a/b:0"], {})]
    path = model(program(nodes, {"x": kind}, {"file": kind, "a/b:0": kind}))
    assert command("run", path, "--input", "x=2", "--save-outputs", tmp_path / "y.npz").status == 0
    with np.load(tmp_path / "y.npz") as outputs:
        assert {name: outputs[name].tolist() for name in outputs} == {"file": [-2, -2], "a/b:0": [2, 2]}


def test_an_input_that_no_output_needs_is_given_to_the_other_runtime_alone(command, model):
    kind = ("float32", [2])
    path = model(program([("Neg", ["x"], ["y"], {})], {"x": kind, "unused": kind}, {"y": kind}))
    ended = command("run", path, "--compare", "onnxruntime", "--tolerance", "0").succeeded()
    assert "unused" in ended.out


def test_an_input_with_a_value_of_its_own_may_be_given_another_one(command, model, tmp_path):
    kind = ("float32", [2])
    weights = {"w": np.full(2, 3, np.float32)}
    path = model(program([("Add", ["x", "w"], ["y"], {})], {"x": kind, "w": kind}, {"y": kind}, weights))
    for options, largest in (([], 4), (["--input", "w=5"], 6), (["--value", "w=7"], 8)):
        told = command("run", path, "--input", "x=1", *options, "--json", "--compare", "onnxruntime").report()
        assert told["outputs"]["y"]["maximum"] == largest, options
        assert told["differences"]["y"]["largest"] == 0
        assert ("w" in told["inputs"]) == bool(options)


def test_narrow_lets_a_type_be_a_narrower_one(command, of_node):
    path = of_node("Add", ["x", "x"], ("int64", [2]))
    told = command("run", path, "--input", "x=3", "--narrow", "int64", "--compare", "onnxruntime", "--json").report()
    assert (told["inputs"]["x"]["data_type"], told["outputs"]["y"]["data_type"]) == ("int64", "int32")
    assert told["differences"]["y"]["largest"] == 0
    assert "yes, int64 as int32, on " in command("info", path, "--narrow", "int64").out


def test_numbers_that_a_narrower_type_lacks_are_told(command, of_node):
    path = of_node("Neg", ["x"], ("int64", [2]))
    command("run", path, "--input", f"x={2**40}", "--narrow", "int64").assert_refused(
        "input 'x' has numbers that are not int32, as --narrow int64 makes it"
    )


def test_an_output_is_computed_alone(command, model):
    kind = ("float32", [2])
    nodes = [("Neg", ["x"], ["y"], {}), ("NonZero", ["y"], ["places"], {})]
    path = model(program(nodes, {"x": kind}, {"y": kind, "places": ("int64", [1, "n"])}))
    assert command("run", path).status == 1
    ended = command("run", path, "--output", "y", "--input", "x=2", "--compare", "onnxruntime", "--json").succeeded()
    assert {name: item["maximum"] for name, item in json.loads(ended.out)["outputs"].items()} == {"y": -2}
    assert "runs here   yes" in command("info", path, "--output", "y").out
