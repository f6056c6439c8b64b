"""``webnn-py spec``: the operators as data: what their declarations, devices, browsers and ONNX say of each."""

import contextlib
import io
import json
import sys

import pytest

from spec_tests.idl import specification
from webnn_py import cli
from webnn_py.core.operators.registry import OPERATORS


@pytest.fixture(scope="module")
def by_name():
    """Return the record of each operator by its name."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert cli.main(["spec", "--json"]) == 0
    return {one["name"]: one for one in json.loads(printed.getvalue())["operators"]}


def test_every_operator_is_there_category_by_category(by_name):
    assert set(by_name) == {operator.spec_name for operator in OPERATORS.values()}
    categories = [one["category"] for one in by_name.values()]
    assert len(dict.fromkeys(categories)) == len(
        [a for a, b in zip(categories, [None, *categories], strict=False) if a != b]
    )


def test_every_argument_of_the_idl_is_there_with_its_type_and_default(by_name):
    for name, declared in specification.OPERATORS.items():
        arguments = {argument["name"]: argument for argument in by_name[name]["arguments"]}
        assert set(arguments) == set(declared["parameters"])
        for parameter, idl in declared["parameters"].items():
            expected = specification.text_of(idl["type"]).replace("enforced ", "[EnforceRange] ")
            assert arguments[parameter]["type"] == expected
            assert arguments[parameter]["required"] == bool(idl["required"])
            if idl.get("default") is not None:
                assert arguments[parameter]["default"] == idl["default"]


def test_one_operator_has_all_parts(by_name):
    conv2d = by_name["conv2d"]
    assert conv2d["section"]["url"] == "https://www.w3.org/TR/webnn/#api-mlgraphbuilder-conv2d"
    arguments = {argument["name"]: argument for argument in conv2d["arguments"]}
    assert arguments["filterLayout"]["values"] == ["oihw", "hwio", "ohwi", "ihwo"]
    assert arguments["filterLayout"]["default"] == "oihw"
    assert [name for name, argument in arguments.items() if argument["kind"] == "operand"] == [
        "input",
        "filter",
        "bias",
    ]
    assert conv2d["limits"]["bias"] == {
        "output": False,
        "data_types": ["float32", "float16"],
        "required_data_types": ["float32", "float16"],
        "ranks": {"min": 1, "max": 1},
        "required_ranks": {"min": 1, "max": 1},
        "data_type_of": "input",
    }
    assert conv2d["limits"]["output"]["output"]
    assert set(conv2d["errors"]) == {"TypeError", "InvalidStateError"}
    assert "matmul" in conv2d["decomposition"]
    assert conv2d["onnx"] == {"operators": ["Conv"], "as_function": False}
    assert conv2d["browsers"]["chromium-153-litert"]["limits"]["bias"]["ranks"] == {"min": 1, "max": 1}
    assert by_name["pad"]["browsers"]["chromium-153-litert"]["refuses"] == ["mode must not be edge"]
    assert "numpy" in conv2d["devices"][0].lower() or len(conv2d["devices"]) > 1


def test_primitives_have_no_decomposition_and_others_end_in_primitives(by_name):
    primitives = {name for name, one in by_name.items() if one["decomposition"] is None}
    assert {"add", "matmul", "gather"} <= primitives
    for one in by_name.values():
        assert set(one["decomposition"] or ()) <= primitives


def test_the_operators_of_onnx_are_not_those_of_calls_that_do_nothing(by_name):
    written = {name: one["onnx"]["operators"] for name, one in by_name.items()}
    assert [name for name, operators in written.items() if operators == ["Identity"]] == ["identity"]
    assert [written[name] for name in ("reduceSum", "transpose", "slice")] == [["ReduceSum"], ["Transpose"], ["Slice"]]


def test_without_onnx_the_command_says_how_it_is_installed(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "webnn_py.onnx_export.model_export", None)
    command("spec", "add", "--json").assert_refused("what ONNX has for an operator needs more: pip install", 1)


def test_texts_are_plain(by_name):
    assert not [name for name, one in by_name.items() if ":func:" in json.dumps(one) or "``" in json.dumps(one)]


def test_operators_are_named_by_either_name(command):
    report = command("spec", "--json", "is_nan", "conv2d").report()
    assert [one["name"] for one in report["operators"]] == ["isNaN", "conv2d"]
    assert report["specification"] == "webmachinelearning/webnn c515210"
    assert len(command("spec", "reduce_sum", "reduceSum", "--json").report()["operators"]) == 1
    lines = command("spec", "gelu").succeeded().out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["gelu", "gelu", "activation"]]


@pytest.mark.parametrize(("name", "words"), [("conv3d", "; did you mean 'conv2d'?"), ("", "")])
def test_an_operator_that_is_not_there_is_refused(command, name, words):
    command("spec", name).assert_refused(f"no operator {name!r}; webnn-py spec lists them{words}")
