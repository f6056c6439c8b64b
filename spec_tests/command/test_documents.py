"""The documents say what the command takes, and what they show works on a trained model."""

import argparse
import re
from pathlib import Path

import magika
import pytest

from webnn_py import cli

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/command.md").read_text(encoding="utf-8")
TRAINED = Path(magika.__file__).parent / "models/standard_v3_3/model.onnx"
OF_JAVASCRIPT = {"node", "npm-pack", "wpt"}


def commands():
    actions = cli._parser()._actions
    (found,) = (action for action in actions if isinstance(action, argparse._SubParsersAction))
    return {name: parser for name, parser in found.choices.items() if name not in OF_JAVASCRIPT}


def options():
    return {text for parser in commands().values() for action in parser._actions for text in action.option_strings}


def test_the_document_names_every_option_and_no_other():
    named = set(re.findall(r"(?<!\w)--[a-z]+(?:-[a-z]+)*", DOCUMENT))
    assert named == {option for option in options() if option.startswith("--")} - {"--help"}


@pytest.mark.parametrize("name", commands())
def test_help_tells_every_option_with_its_meaning(name, command):
    ended = command(name, "--help")
    assert ended.status == 0
    assert ended.out.isascii()  # argparse prints it itself, to terminals of any encoding
    parser = commands()[name]
    assert f"usage: webnn-py {name}" in ended.out
    assert all(action.help for action in parser._actions if action.dest not in {"help", "shell"})


def test_a_trained_model_is_told_of_converted_and_run(command, tmp_path):
    told = command("info", TRAINED, "--backend", "numpy", "--json").report()
    assert told["runs"]
    assert told["nodes"] == 95
    out = tmp_path / "fixed.onnx"
    size = f"{told['inputs']['bytes']['shape'][0]}=1"
    assert command("convert", TRAINED, out, "--shape", size, "--json").report()["nodes"] == 84
    arguments = ("--input", "random:0,255", "--compare", "onnxruntime", "--tolerance", "1e-3", "--json")
    one = command("run", TRAINED, "--shape", "bytes=1,2048", *arguments).report()
    other = command("run", out, *arguments).report()
    assert one["outputs"] == other["outputs"]
