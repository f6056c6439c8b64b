"""Drawings as text, written as ONNX models, run by onnxruntime, and read back."""

import tomllib
from pathlib import Path

import numpy as np
import onnxruntime

from spec_tests.operators.cases import decode
from webnn_py import MLGraphBuilder
from webnn_py.core.graph import Constant, Input
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import OnnxModel, to_model

LISTED = Path(__file__).parent / "exceptions.toml"
OPTIONS = onnxruntime.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.intra_op_num_threads = 1


def run(model, feeds):
    """Return the outputs of a model by name, computed by onnxruntime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    needed = {item.name for item in session.get_inputs()}
    given = {name: array for name, array in feeds.items() if name in needed}
    return dict(zip(names, session.run(None, given), strict=True))


def read_back(context, model):
    """Return a builder and the outputs that a model draws in it."""
    builder = MLGraphBuilder(context)
    return builder, OnnxModel.load(model.SerializeToString()).convert(builder)


def described(outputs, *, labels=True):
    """Return a drawing as text, a line a node: two are the same if their texts are."""
    graph = drawing_of("described", outputs)
    names = {value: name for name, value in graph.inputs.items()}

    def name(value):
        if isinstance(value, Constant):
            return f"{value.descriptor} {hash(np.asarray(value.data).tobytes()):x}"
        return names[value]

    lines = []
    for number, node in enumerate(graph.nodes):
        operands = ", ".join(map(name, node.inputs))
        lines.append(f"{node.operator.name}({operands}) {node.options} {node.label if labels else ''}")
        names |= {result: f"{number}.{result.index}" for result in node.results}
    return [*lines, *(f"{output} = {name(value)}" for output, value in graph.outputs.items())]


def operators_of(outputs, *, constant=True):
    """Return the names of a drawing's operators; unless ``constant``, without nodes that depend on constants only."""
    nodes = drawing_of("operators_of", outputs).nodes
    varying = set()
    for node in nodes:
        if any(isinstance(value, Input) or value in varying for value in node.inputs):
            varying.update(node.results)
    return [node.operator.name for node in nodes if constant or node.results[0] in varying]


def written_again(context, model):
    """Return the drawing of a model as text, the model of that drawing, and its builder."""
    builder, outputs = read_back(context, model)
    again = to_model(outputs)
    return described(outputs), again, builder


def draw_cases(context, file, cases, *, constants):
    """Draw all cases as one; return the builder, the arrays of its inputs, and the outputs of each case, by name."""
    builder, feeds, outputs = MLGraphBuilder(context), {}, {}

    def operand(tensor, name):
        array = decode(tensor)
        if constants and tensor.get("constant"):
            return builder.constant(array)
        feeds[name] = array
        return builder.input(name, data_type=array.dtype.name, shape=array.shape)

    for number, case in enumerate(cases):
        arguments = {
            key: [operand(item, f"{number}.{key}.{index}") for index, item in enumerate(given)]
            if isinstance(given, list)
            else operand(given, f"{number}.{key}")
            for key, given in case.inputs.items()
        }
        drawn = getattr(builder, file.operator)(**arguments, **case.options, label=f"case {number}")
        drawn = drawn if isinstance(drawn, list) else [drawn]
        outputs[case.name] = {f"{number}.output{index}": item for index, item in enumerate(drawn)}
    return builder, feeds, outputs


def listed(kind):
    """Return the exceptions of a kind in the list."""
    return tomllib.loads(LISTED.read_text(encoding="utf-8"))[kind]
