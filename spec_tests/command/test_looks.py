"""``webnn-py run --profile`` and ``--check-finite``: looks into the graph."""

import json

import numpy as np
import pytest

from spec_tests.support.onnx_programs import program


@pytest.fixture
def rooted(model):
    """y = relu(sqrt(x · w))."""
    nodes = [("MatMul", ["x", "w"], ["p"], {}), ("Sqrt", ["p"], ["r"], {}), ("Relu", ["r"], ["y"], {})]
    kind = ("float32", [1, 2])
    return model(program(nodes, {"x": kind}, {"y": kind}, {"w": np.eye(2, dtype=np.float32)}))


def test_a_profile_is_printed_as_a_table(command, rooted, backend):
    if backend == "onnxruntime":
        pytest.skip("it does not time kernels")
    ended = command("run", rooted, "--input", "x=1", "--backend", backend, "--profile").succeeded()
    table = ended.out[ended.out.index("\nprofile\n") :].splitlines()
    assert table[2].endswith(" with timings; the faster half of 10 runs")
    assert table[3].endswith(" of a dispatch in a row")
    *columns, unit, share, last = table[6].split()
    assert columns == ["time", "share", "moved", "GB/s", "%copy", "work"]
    assert unit in {"GF/s", "TF/s"}
    assert (share, last) == ("%mult", "kernel")
    assert any("matmul" in line for line in table)
    assert any(line.endswith("waiting and launch") for line in table)
    assert max(map(len, table)) <= 100


def test_json_has_the_profile_and_what_is_not_finite(command, rooted):
    asked = ("--profile", "--check-finite", "--repeat", "11", "--json")
    ended = command("run", rooted, "--backend", "numpy", "--input", "x=-2", *asked)
    assert ended.status == 1, ended.err
    told = json.loads(ended.out)
    assert told["profile"]["repeat"] == 11
    assert sum(kernel["flops"] for kernel in told["profile"]["kernels"]) == 2 * 2 * 2 + 2 + 2
    assert told["first_non_finite"]["operator"] == "sqrt"
    assert told["first_non_finite"]["value"] == "nan"
    assert told["first_non_finite"]["inputs"][0]["maximum"] == -2


def test_what_is_not_asked_for_is_not_told(command, rooted):
    told = command("run", rooted, "--input", "x=-2", "--json").report()
    assert not {"profile", "first_non_finite"} & told.keys()


def test_a_node_that_makes_nan_is_named_and_a_status(command, rooted, backend):
    ended = command("run", rooted, "--input", "x=-2", "--backend", backend, "--check-finite")
    assert ended.status == 1
    lines = ended.out.splitlines()
    assert lines[-3].startswith("sqrt")
    assert lines[-3].endswith("(node 1) makes nan at [0, 0]")
    assert lines[-2:] == ["  output float32 [1, 2]: no finite element, 2 NaN", "  input float32 [1, 2]: -2 to -2"]
    ended = command("run", rooted, "--input", "x=2", "--backend", backend, "--check-finite")
    assert ended.status == 0
    assert ended.out.splitlines()[-1] == "no node makes a NaN or an infinity"


@pytest.mark.parametrize("backend", ["reference", "onnxruntime"])
def test_a_device_that_was_asked_for_and_times_no_kernels_is_refused_before_the_run(backend, command, rooted):
    ended = command("run", rooted, "--backend", backend, "--profile")
    ended.assert_refused("does not time kernels; give --backend numpy")


@pytest.mark.usefixtures("no_adapters")
def test_where_the_default_device_times_no_kernels_numpy_runs_the_model(command, rooted):
    ended = command("run", rooted, "--input", "x=1", "--profile", "--check-finite", "--output", "y").succeeded()
    lines = ended.out.splitlines()
    assert lines[1].startswith("device  numpy (")
    assert lines[lines.index("profile") + 1].endswith(" runs")
    assert any(line.endswith("waiting and launch") for line in lines)
    assert any(line.endswith(("matmul [MatMul of p]", "matmul")) for line in lines)
    assert command("run", rooted, "--input", "x=1", "--json").report()["device"].startswith("onnxruntime (")
