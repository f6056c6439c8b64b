"""Sensitivity of onnxruntime's outputs to intermediate floats that change by one ULP.

What is quantized by its own range falls to the other side then, now and then. No other implementation is nearer to it
than that, but one that adds in the same order and has the same exponentials.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from spec_tests.labs.real_models.comparison import all_values, farthest, results_of, session_of, without_branches
from spec_tests.labs.real_models.contents import TYPES
from spec_tests.labs.real_models.meanings import MEANINGS, letters_of
from spec_tests.labs.real_models.questions import asked_of

RUNS = 12
"""Each moves other elements."""
NOT_ROUNDED_ALIKE = {
    *(
        "Conv",
        "DynamicQuantizeLSTM",
        "Erf",
        "Exp",
        "Gelu",
        "Gemm",
        "GRU",
        "LayerNormalization",
        "LSTM",
        "MatMul",
        "Pow",
    ),
    *("ReduceMean", "ReduceSum", "Sigmoid", "SimplifiedLayerNormalization", "Softmax", "Tanh"),
}
"""Operators whose results implementations round each in its own way: sums, and what no processor computes itself.

Those that every processor rounds alike (Add, Mul, Div, Sqrt) stay as they are.
"""
OF_PRODUCTS = (3, 8, 10)
"""The inputs of a DynamicQuantizeLSTM that are moved, too: bias and scales. What its steps compute is not seen."""
LARGEST = 1e30
"""Larger numbers stand for infinity, in masks."""


def moves_by(model, path, runs=RUNS):
    """Return the largest distance of the outputs from the originals in some runs, relative to the largest value."""
    plain, *moved = runs_of(model, path, runs)
    return max(farthest(item, plain) for item in moved)


def moving_answers(model, path, folder, runs=RUNS):
    """To how many questions about a model without states some run has another answer."""
    mean, letters = MEANINGS[model.meaning], letters_of(path)
    count = 0
    for asked in asked_of(model, folder):
        plain, *moved = (mean(item, letters) for item in runs_of(model, path, runs, asked))
        count += any(item != plain for item in moved)
    return count


def runs_of(model, path, runs, asked=None):
    """The outputs by name as they are, and then those of some runs; ``asked`` is given instead of what is listed."""
    proto = without_branches(onnx.load(path), model)
    session = session_of(proto.SerializeToString())
    types = {item.name: TYPES[item.type] for item in session.get_inputs()}
    asked = {name: array.astype(types[name]) for name, array in (asked or {}).items()}
    values, _ = all_values(proto, model, asked)
    feeds = {name: values[name] for name in types}
    yield results_of(session, feeds)
    for seed in range(runs):
        moved = moved_model(proto, values, np.random.default_rng(seed))
        yield results_of(session_of(moved.SerializeToString()), feeds)


def moved_model(proto, values, random):
    """A model that adds to each such result one unit in the last place, takes it away, or leaves it as it is.

    Args:
        proto: the model.
        values: what its nodes give, by name.
        random: chooses, for each element.
    """
    moved = onnx.ModelProto.FromString(proto.SerializeToString())
    initializers = {item.name: item for item in proto.graph.initializer}
    nodes = []
    for node in proto.graph.node:
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        nodes.append(copy)
        for place in OF_PRODUCTS if node.op_type == "DynamicQuantizeLSTM" else ():
            value = numpy_helper.to_array(initializers[node.input[place]])
            copy.input[place] = f"{node.output[0]} input {place} moved"
            added = numpy_helper.from_array(value + _units(value, random), copy.input[place])
            moved.graph.initializer.append(added)
        for index, name in enumerate(node.output):
            value = values.get(name) if node.op_type in NOT_ROUNDED_ALIKE and name else None
            if value is None or value.dtype != np.float32 or not value.size:
                continue
            copy.output[index] = f"{name} before"
            moved.graph.initializer.append(numpy_helper.from_array(_units(value, random), f"{name} moved by"))
            nodes.append(helper.make_node("Add", [f"{name} before", f"{name} moved by"], [name]))
    del moved.graph.node[:]
    moved.graph.node.extend(nodes)
    return moved


def _units(value, random):
    """A unit in the last place of each element times -1, 0 or 1."""
    usual = np.abs(value) < LARGEST
    units = np.spacing(np.abs(np.where(usual, value, 0)))
    return np.where(usual & (value != 0), units * random.integers(-1, 2, value.shape), 0).astype(np.float32)
