"""Strings of a file are shown with their control characters escaped, in whatever the command or the library says."""

import unicodedata

import numpy as np
import pytest
import trio
from onnx import TensorProto, helper

from spec_tests.support.cells import cells
from webnn_py import cli
from webnn_py.core import message_text
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.ml import open_ml
from webnn_py.onnx_models import InvalidModelError, OnnxModel, Problem, UnsupportedModelError
from webnn_py.runtime import Environment

NASTY = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202egnp\u2066\u2028\r\n\t\x7f\x00\u200b\U000e0041"
"""Escape sequences, C1, changes of direction, line ends, DEL, NUL, what cannot be seen."""


def assert_escaped(text, where):
    """No character of a text is a control or a format character, but for the ends of lines."""
    found = {
        f"U+{ord(character):04X}" for character in text if character != "\n" and unicodedata.category(character) in BAD
    }
    assert not found, f"{where} has {sorted(found)}: {text!r:.600}"
    assert not any(line.startswith(("\\t", "\\u0009")) for line in text.splitlines()), (
        f"a line end in {where}: {text!r}"
    )


BAD = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def hostile(*nodes, shape=("batch", 3), output_shape=None, data_type=TensorProto.FLOAT, weights=()):
    """A model with such characters in every text that it has."""
    sizes = [f"{size}{NASTY}" if isinstance(size, str) else size for size in shape]
    graph = helper.make_graph(
        [*nodes],
        f"graph{NASTY}",
        [helper.make_tensor_value_info(f"x{NASTY}", data_type, sizes, f"doc{NASTY}")],
        [helper.make_tensor_value_info(f"y{NASTY}", data_type, output_shape or sizes)],
        [*weights],
        doc_string=f"doc{NASTY}",
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(f"other{NASTY}", 1)],
        producer_name=f"producer{NASTY}",
        producer_version=NASTY,
        domain=f"domain{NASTY}",
        doc_string=NASTY,
        ir_version=8,
    )
    helper.set_model_props(model, {f"key{NASTY}": f"value{NASTY}"})
    return model


def node(operator, inputs=("x",), outputs=("y",), domain="", **attributes):
    inputs, outputs = ([f"{name}{NASTY}" for name in names] for names in (inputs, outputs))
    return helper.make_node(operator, inputs, outputs, name=f"node{NASTY}", domain=domain, **attributes)


MODELS = {
    "runs": hostile(node("Relu")),
    "makes a NaN": hostile(node("Neg", outputs=["a"]), node("Log", ["a"])),
    "unknown operator": hostile(node(f"Strange{NASTY}")),
    "unknown domain": hostile(node(f"Strange{NASTY}", domain=f"other{NASTY}")),
    "undeclared domain": hostile(node("Strange", domain=f"none{NASTY}")),
    "unknown attribute": hostile(node("Relu", **{f"alpha{NASTY}": f"text{NASTY}"})),
    "attribute of a wrong value": hostile(node("Resize", ["x"], mode=f"cubic{NASTY}")),
    "undefined input": hostile(node("Relu", ["z"])),
    "float64": hostile(node("Relu"), data_type=TensorProto.DOUBLE),
    "strings": hostile(node("Identity"), data_type=TensorProto.STRING),
    "no shapes fit": hostile(
        node("MatMul", ["x", "w"]), weights=[helper.make_tensor(f"w{NASTY}", TensorProto.FLOAT, [7, 2], [0.0] * 14)]
    ),
    "external data": hostile(
        node("Add", ["x", "w"]),
        weights=[
            TensorProto(
                name=f"w{NASTY}",
                dims=[3],
                data_type=TensorProto.FLOAT,
                data_location=TensorProto.EXTERNAL,
                external_data=[{"key": "location", "value": f"weights{NASTY.replace(chr(0), '')}"}],
            )
        ],
    ),
    "two of a name": hostile(node("Relu"), node("Relu")),
}

COMMANDS = {
    "info": ["info", "MODEL"],
    "info --json": ["info", "MODEL", "--json"],
    "info --browser": ["info", "MODEL", "--browser", "chromium-153-litert"],
    "run": ["run", "MODEL"],
    "run with a shape": ["run", "MODEL", "--shape", f"x{NASTY}=2,3"],
    "run --debug": ["run", "MODEL", "--shape", f"x{NASTY}=2,3", "--debug"],
    "run --json": ["run", "MODEL", "--shape", f"x{NASTY}=2,3", "--json"],
    "run --compare": ["run", "MODEL", "--shape", f"x{NASTY}=2,3", "--compare", "onnxruntime", "--tolerance", "0"],
    "run --check-finite": ["run", "MODEL", "--input", f"x{NASTY}=1", "--shape", f"x{NASTY}=2,3", "--check-finite"],
    "run --output": ["run", "MODEL", "--output", "z"],
    "run --input": ["run", "MODEL", "--input", "z=1"],
    "run --value": ["run", "MODEL", "--value", f"x{NASTY}=one"],
    "run --labels": ["run", "MODEL", "--shape", f"x{NASTY}=2,3", "--labels", "LABELS"],
    "convert": ["convert", "MODEL", "OUT"],
    "convert --shape": ["convert", "MODEL", "OUT", "--shape", f"x{NASTY}=2,3"],
    "convert --js": ["convert", "MODEL", "FOLDER", "--js", "--shape", f"x{NASTY}=2,3"],
}


@cells("name", COMMANDS)
@cells("kind", MODELS)
def test_no_command_prints_what_a_file_has_of_control_characters(kind, name, tmp_path, capfd):
    tmp_path /= f"{kind}, {name}"
    tmp_path.mkdir()
    path = tmp_path / "model.onnx"
    path.write_bytes(MODELS[kind].SerializeToString())
    (tmp_path / "labels.txt").write_text("\n".join(["a", f"label{NASTY.splitlines()[0]}", "c"]), encoding="utf-8")
    places = {
        "MODEL": path,
        "OUT": tmp_path / "out.onnx",
        "FOLDER": tmp_path / "folder",
        "LABELS": tmp_path / "labels.txt",
    }
    arguments = [places.get(argument, argument) for argument in COMMANDS[name]]
    backend = [] if arguments[0] == "convert" else ["--backend", "numpy"]
    cli.main([str(argument) for argument in (*arguments, *backend)])
    written = capfd.readouterr()  # also what onnxruntime logs by itself
    for where, text in (("stdout", written.out), ("stderr", written.err)):
        assert_escaped(text, f"{where} of {name} for a model that {kind}")
    assert written.out or written.err


@pytest.mark.parametrize("form", ["txt", "mmd", "dot", "svg", "html"])
def test_no_picture_of_a_graph_has_them(form, command, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(MODELS["runs"].SerializeToString())
    command("info", path, "--backend", "numpy", "--graph", tmp_path / f"graph.{form}").succeeded()
    written = (tmp_path / f"graph.{form}").read_text(encoding="utf-8")
    assert "node" in written
    assert_escaped(written, form)


def test_no_profile_has_them(command, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(MODELS["runs"].SerializeToString())
    ended = command("run", path, "--shape", f"x{NASTY}=2,3", "--profile", "--backend", "numpy").succeeded()
    assert "node\\u001b" in ended.out
    assert_escaped(ended.out, "profile")


def test_no_bar_has_those_of_a_files_name(command, terminal, tmp_path):
    path = tmp_path / "a\x1b]0;owned\x07\nb.onnx"
    path.write_bytes(hostile(node("Relu"), shape=(2, 3)).SerializeToString())
    ended = command("run", path, "--backend", "numpy").succeeded()
    assert_escaped(ended.out, "stdout")
    assert "loading a\\u001b]0;owned\\u0007\\u000ab.onnx" in terminal.getvalue()
    assert "\x1b]0;" not in terminal.getvalue()


@pytest.mark.parametrize("kind", MODELS)
async def test_no_error_of_the_library_has_them(kind):
    told = []
    try:
        model = OnnxModel.load(MODELS[kind].SerializeToString())
    except InvalidModelError as error:
        assert_escaped(str(error), "InvalidModelError")
        return
    told.append(repr(model))
    told += [str(item) for item in (*model.inputs.values(), *model.outputs.values())]
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        name = f"x{NASTY}"
        for shapes, values, outputs in (
            ({name: (2, 3)}, {}, None),
            ({}, {}, None),
            ({name: (2,)}, {}, None),
            ({}, {name: np.ones((2, 3), np.int8)}, None),
            ({NASTY: (2, 3)}, {}, None),
            ({name: (2, 3)}, {}, [NASTY]),
        ):
            try:
                model.convert(MLGraphBuilder(context), shapes, values, outputs=outputs)
            except UnsupportedModelError as error:
                told += [str(error), *map(str, error.problems)]
                told += [text for item in error.problems for text in (item.subject, item.reason, item.way_out)]
            except ValueError as error:
                told.append(str(error))
        async with Environment(ml, "numpy") as environment:
            for options in (
                {},
                {"free_dimensions": {NASTY: 2}},
                {"input_values": {NASTY: 1}},
                {"output_names": [NASTY]},
            ):
                try:
                    session = await environment.create_session(model, **options)
                    told.append(repr(session))
                    await session.run({name: np.ones((2, 4), np.float32)})
                except (TypeError, ValueError) as error:
                    told.append(str(error))
                await trio.lowlevel.checkpoint()
    for text in told:
        assert_escaped(text, "the library")


def test_a_problem_says_its_words_escaped_and_its_names_as_they_are():
    problem = Problem(f"node {NASTY}", NASTY, NASTY, NASTY, NASTY)
    assert_escaped(str(problem), "Problem")
    assert (problem.operator, problem.name) == (NASTY, NASTY)
    assert_escaped(str(UnsupportedModelError([problem, problem])), "UnsupportedModelError")
    assert_escaped(str(InvalidModelError(NASTY)), "InvalidModelError")


def test_what_can_be_seen_stays_as_it_is():
    assert message_text.visible("Größe 大小 ✓ \\n") == "Größe 大小 ✓ \\n"
    assert message_text.visible("\x1b\n\x9b\u202e\U000e0041") == "\\u001b\\u000a\\u009b\\u202e\\ue0041"
