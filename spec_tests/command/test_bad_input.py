"""Errors are reported in one line, with the status 2 for what was given and 1 for what could not be done."""

import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from spec_tests.support.onnx_programs import program
from webnn_py.command import comparison
from webnn_py.extras import install_command

WRONG = [
    (["--input", "z=random"], "--input names 'z'; the model's inputs are x"),
    (["--input", "x=strange"], "--input x=strange: it must be a file"),
    (["--input", "missing.npz"], "missing.npz: No such file or directory"),
    (["--input", "x=missing.npy"], "missing.npy: No such file or directory"),
    (["--input", "1", "--input", "x=0", "--shape", "rows=1"], "--input has 'x' twice"),
    (["--input", "x=random:2", "--shape", "rows=1"], "it must be random:LOW,HIGH"),
    (["--input", "x=random:2,1", "--shape", "rows=1"], "it must be random:LOW,HIGH"),
    (["--shape", "x=2"], "--shape x=2 is of shape [2]; input 'x' is float32 [rows, 3]"),
    (["--shape", "x=2,4"], "--shape x=2,4 is of shape [2, 4]; input 'x' is float32 [rows, 3]"),
    (["--shape", "x=2,a"], "--shape x=2,a: it must be whole numbers from 1"),
    (["--shape", "rows=0"], "--shape rows=0: it must be whole numbers from 1"),
    (["--shape", "rows=1,2"], "'rows' is a dimension; it must be one number"),
    (["--shape", "rows=1", "--shape", "x=2,3"], "makes the dimension 'rows' 2; --shape rows=1 makes it 1"),
    (["--shape", "columns=1"], "--shape names 'columns'; the model's inputs and dimensions are x, rows"),
    (["--shape", "x"], "--shape 'x' must have the form NAME=…"),
    (["--shape", "x=1,3", "--shape", "x=1,3"], "--shape has 'x' twice"),
    (["--value", "x=one"], "--value x=one: it must be numbers with commas between, or a .npy file"),
    (["--value", "x=1,2,3"], "give it as a .npy file"),
    (["--tolerance", "1"], "--tolerance needs --compare onnxruntime"),
    (["--scale", "0"], "--scale needs an --input that is a picture"),
    (["--mean", "1", "--input", "1"], "--mean needs an --input that is a picture"),
    (["--repeat", "0"], "argument --repeat: '0' must be a whole number from 1"),
    (["--backend", "numpy", "--gpu-engine", "dawn"], "--gpu-engine is wgpu's; give --backend wgpu with it, not numpy"),
    (["--backend", "numpy", "--execution-provider", "X"], "--execution-provider is onnxruntime's; give --backend onn"),
    (["--backend", "abacus"], "argument --backend: invalid choice: 'abacus'"),
    (["--save-outputs", "outputs.txt"], "it must end in .npz"),
    (["--save-outputs", "missing/outputs.npz"], "missing is no folder"),
    (["--shape", "rows=1", "--output", "z"], "--output names 'z'; the model's outputs are y"),
    (["--narrow", "float16"], "argument --narrow: invalid choice: 'float16'"),
    (["--labels", "missing.txt"], "missing.txt: No such file or directory"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_wrong_arguments_are_told_in_one_line(arguments, text, command, doubled):
    command("run", doubled, *arguments).assert_refused(text)


def test_an_option_that_there_is_not_is_told_in_one_line(command, doubled):
    ended = command("run", doubled, "--nonsense")
    assert (ended.status, ended.err) == (2, "webnn-py: unrecognized arguments: --nonsense (see --help)\n")


def test_what_is_no_model_is_told(read_by, tmp_path):
    read_by(tmp_path / "missing.onnx").assert_refused("No such file or directory")
    read_by(tmp_path).assert_refused(f"{tmp_path}: ")
    (tmp_path / "text.onnx").write_text("no model", encoding="utf-8")
    read_by(tmp_path / "text.onnx").assert_refused("text.onnx")


def test_data_that_is_missing_beside_a_model_is_named(read_by, doubled, tmp_path):
    weights = numpy_helper.from_array(np.ones(300, np.float32), "w")
    proto = onnx.load_model(doubled)
    proto.graph.initializer.append(weights)
    proto.graph.node[0].input[1] = "w"
    path = tmp_path / "apart.onnx"
    onnx.save_model(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=1)
    (tmp_path / "weights.bin").unlink()
    read_by(path).assert_refused(f"{path} needs {tmp_path / 'weights.bin'}: No such file or directory\n")


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.ones((2, 4), np.float32), "is of shape [2, 4]; input 'x' is float32 [rows, 3]"),
        (np.ones(3, np.float32), "is of shape [3]; input 'x' is float32 [rows, 3]"),
        (np.array([["a", "b", "c"]]), "is <U1; input 'x' is float32 [rows, 3]"),
        (np.array([[1, 2, None]], object), "cannot be read as an array"),
    ],
    ids=["a size", "the rank", "texts", "objects"],
)
def test_arrays_that_do_not_fit_are_told(array, text, command, doubled, tmp_path):
    np.save(tmp_path / "x.npy", array)
    command("run", doubled, "--input", tmp_path / "x.npy").assert_refused(text)


def test_numbers_that_a_type_does_not_have_are_told(command, of_node, tmp_path):
    path = of_node("Identity", ["x"], ("int8", [2]))
    np.save(tmp_path / "x.npy", np.array([1, 300]))
    text = "has numbers that are not int8, as input 'x' is"
    command("run", path, "--input", tmp_path / "x.npy").assert_refused(text)
    command("run", path, "--input", "x=0.5").assert_refused(text)
    for option in ("--input", "--value"):
        command("run", path, option, f"x={'9' * 400}").assert_refused("input 'x' is int8")
    np.save(tmp_path / "x.npy", np.array([1.0, -3.0]))
    assert command("run", path, "--input", tmp_path / "x.npy").status == 0


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04 no archive"])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".png"])
def test_files_that_are_broken_are_told(content, suffix, command, doubled, tmp_path):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    command("run", doubled, "--input", path, "--shape", "rows=2").assert_refused("x")


def test_several_inputs_need_a_name(command, of_node):
    path = of_node("Add", ["a", "b"], ("float32", [2]))
    command("run", path, "--input", "1").assert_refused("--input 1: say for which input")


def test_an_archive_without_the_inputs_arrays_is_told(command, doubled, tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, a=np.ones(2), x=np.array([{}]))
    command("run", doubled, "--input", path).assert_refused("--input names 'a'; the model's inputs are x")
    command("run", doubled, "--input", f"x={path}").assert_refused("Object arrays cannot be loaded")
    np.savez(path, a=np.ones(2))
    command("run", doubled, "--input", f"x={path}").assert_refused(f"{path} has no array 'x'; it has a")
    np.savez(path, x=np.ones((1, 4)))
    command("run", doubled, "--input", path).assert_refused(
        f"{path} is of shape [1, 4]; input 'x' is float32 [rows, 3]"
    )


def test_what_cannot_be_imported_is_told_with_status_1(command, of_node):
    path = of_node("NonZero", ["x"], ("float32", [2, 2]))
    command("run", path).assert_refused(
        "cannot be run here: node 'NonZero of y' (NonZero, opset 17): the operator is not supported", 1
    )


def test_of_many_reasons_the_first_are_told(command, model):
    kind = ("float32", [2])
    operators = ("RandomUniformLike", "NonZero", "Unique", "StringNormalizer", "Multinomial")
    nodes = [(operator, ["x"], [operator], {}) for operator in operators]
    path = model(program(nodes, {"x": kind}, dict.fromkeys(operators, ("float32", None))))
    command("run", path).assert_refused("; and 2 other reasons, which `webnn-py info` lists\n", 1)


def test_ways_out_are_worded_as_options(command, of_node):
    path = of_node("NonZero", ["x"], ("float32", [2]), ("int64", [1, "n"]))
    command("run", path).assert_refused("; freeze input 'x', by --value", 1)


def test_a_picture_for_a_list_is_told_and_no_way_out_that_is_none(command, of_node, tmp_path):
    path = of_node("Relu", ["x"], ("float32", [4]))
    (tmp_path / "x.png").write_bytes(b"")
    ended = command("run", path, "--input", tmp_path / "x.png")
    ended.assert_refused("input 'x' is float32 [4]; a picture needs three or four dimensions\n")


def test_a_traceback_comes_with_debug_alone(command, doubled, run_by):
    def fail(self, feeds):
        raise ZeroDivisionError("somewhere")

    run_by(fail)
    arguments = ("run", doubled, "--shape", "rows=1", "--backend", "numpy")
    command(*arguments).assert_refused("ZeroDivisionError: somewhere (--debug shows where)", 1)
    told = command(*arguments, "--debug")
    assert told.status == 1
    assert "Traceback" in told.err
    assert "in fail" in told.err


def test_an_interrupt_ends_with_status_130_and_says_nothing(command, doubled, run_by):
    async def interrupt(self, feeds):
        raise KeyboardInterrupt

    run_by(interrupt)
    ended = command("run", doubled, "--shape", "rows=1", "--backend", "numpy", "--debug")
    assert (ended.status, ended.out, ended.err) == (130, "", "")


@pytest.mark.parametrize(
    ("module", "arguments", "hint"),
    [
        ("onnx", ["run", "MODEL"], f"needs more: {install_command('cli')}"),
        ("onnx", ["info", "MODEL"], f"needs more: {install_command('cli')}"),
        ("onnxruntime", ["run", "MODEL", "--compare", "onnxruntime"], "pip install onnxruntime"),
        ("shtab", ["completion", "bash"], f"needs more: {install_command('cli')}"),
    ],
)
def test_what_is_not_installed_is_told_in_one_line(module, arguments, hint, command, *, doubled, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    ended = command(*(doubled if item == "MODEL" else item for item in arguments))
    ended.assert_refused(hint, 1)


def test_a_model_that_onnxruntime_cannot_run_is_told(command, doubled):
    proto = onnx.load(doubled)
    proto.ir_version = 99
    onnx.save(proto, doubled)
    ended = command("run", doubled, "--shape", "rows=1", "--backend", "numpy", "--compare", "onnxruntime")
    ended.assert_refused("onnxruntime cannot run the model: ", 1)
    assert "IR version" in ended.err


def test_outputs_of_other_shapes_cannot_be_compared():
    with pytest.raises(Exception, match=r"output 'y' is of shape \[2\]; onnxruntime's, \[3\]"):
        comparison.difference("y", np.ones(2), np.ones(3))


def test_a_closed_output_ends_quietly(doubled):
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-m", "webnn_py", "run", str(doubled), "--shape", "rows=1", "--backend", "numpy"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (run.returncode, run.stderr) == (1, "")


def test_the_base_commands_need_no_extra():
    program = (
        "import sys; sys.modules |= dict.fromkeys(['onnx', 'PIL', 'tqdm', 'shtab', 'onnxruntime']); "
        "from webnn_py import cli; sys.exit(cli.main(['devices', '--json']))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert '"backend": "numpy"' in run.stdout
    assert "onnxruntime cannot be loaded" in run.stdout
