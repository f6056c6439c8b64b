"""Running a model here and in onnxruntime without its optimizations, as a whole and node by node."""

import time

import attrs
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import webnn_py
from spec_tests.labs.real_models.contents import content
from spec_tests.labs.real_models.exact import exactly
from spec_tests.support.computing import compute_graph
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel


@attrs.frozen
class Result:
    """The comparison of a model.

    Attributes:
        nodes: how many it has, those of its branches and bodies counted.
        seconds: of the processor, to read and draw it.
        difference: from onnxruntime, relative to the largest value of an output; the largest of all outputs.
        are_bits: whether all outputs are onnxruntime's, bit for bit.
        from_exact: likewise from float64, of here and of onnxruntime; None where that is not asked for.
    """

    nodes: int
    seconds: float
    difference: float
    are_bits: bool
    from_exact: tuple[float, float] | None = None


@attrs.frozen
class Apart:
    """The comparison of a model's nodes, each given what onnxruntime computed before it.

    Attributes:
        compared: how many outputs.
        difference: the largest of floats, relative to an output's largest value.
        steps: the largest of integers.
        where: the outputs of both.
    """

    compared: int
    difference: float
    steps: int
    where: tuple[str, str]


def session_of(model, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, *, threads=1):
    """A session of a path, or of bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that spin after a run would take the processors of what is measured beside it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def feeds_of(model, session):
    """Return the inputs of a listed model, and which of them are known."""
    given = {item.name: content(model.inputs[item.name], item.type) for item in session.get_inputs()}
    return {name: value for name, (value, _) in given.items()}, {name for name, (_, known) in given.items() if known}


def results_of(session, feeds):
    """The outputs by name; what is a map for each row is a row of its values, as ZipMap is here."""
    results = zip([item.name for item in session.get_outputs()], session.run(None, feeds), strict=True)
    return {
        name: np.array([list(row.values()) for row in value]) if isinstance(value, list) else value
        for name, value in results
    }


def drawn(context, model, path, feeds, known):
    """Return a builder and the outputs of a listed model."""
    builder = MLGraphBuilder(context)
    shapes = {name: value.shape for name, value in feeds.items() if name not in known}
    loaded = OnnxModel.load(path, **model.options)
    return builder, loaded.convert(builder, shapes, {name: feeds[name] for name in known})


async def compared(model, path, backend):
    """Run a model both ways."""
    session = session_of(str(path))
    feeds, known = feeds_of(model, session)
    wanted = results_of(session, feeds)
    del session
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        began = time.thread_time()
        builder, outputs = drawn(context, model, path, feeds, known)
        seconds = time.thread_time() - began
        ours = await compute_graph(context, await builder.build(outputs), feeds)
    assert ours.keys() == wanted.keys(), sorted(ours.keys() ^ wanted.keys())
    from_exact = None
    if model.exact:
        exact = exactly(path, feeds)
        from_exact = farthest(ours, exact), farthest(wanted, exact)
    nodes = _count(onnx.load(path, load_external_data=False).graph)
    are_bits = all(np.array_equal(ours[name], wanted[name], equal_nan=True) for name in wanted)
    return Result(nodes, seconds, farthest(ours, wanted), are_bits, from_exact)


def farthest(ours, theirs):
    """The largest difference of any output."""
    return max(difference(ours[name], theirs[name]) for name in theirs)


def from_itself(model, path):
    """Return the largest distance of onnxruntime with optimizations, at any level, from itself without."""
    session = session_of(str(path))
    feeds, _ = feeds_of(model, session)
    plain = results_of(session, feeds)
    levels = onnxruntime.GraphOptimizationLevel
    return max(
        farthest(results_of(session_of(str(path), level), feeds), plain)
        for level in (levels.ORT_ENABLE_BASIC, levels.ORT_ENABLE_EXTENDED, levels.ORT_ENABLE_ALL)
    )


def difference(ours, theirs):
    """Return the distance of two outputs, relative to the largest value; infinite where a shape or a NaN differs."""
    ours, theirs = ours.astype(np.float64), np.asarray(theirs).astype(np.float64)
    if ours.shape != theirs.shape or not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return np.inf
    finite = np.isfinite(theirs)
    largest = np.abs(theirs[finite]).max(initial=0)
    apart = np.abs(ours - theirs)[finite].max(initial=0)
    return float(apart / largest) if largest else float(apart)


def _count(graph):
    inner = [item.g for node in graph.node for item in node.attribute if item.HasField("g")]
    return len(graph.node) + sum(map(_count, inner))


async def compared_apart(model, path, backend):
    """Give each node what onnxruntime computed before it, and compare what it makes of that."""
    proto = without_branches(onnx.load(path), model)
    values, known = all_values(proto, model)
    taken, given, wanted = taken_apart(proto, values, known)
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        outputs = OnnxModel.load(taken.SerializeToString(), **model.options).convert(builder)
        ours = await compute_graph(context, await builder.build(outputs), given)
    return _told(ours, wanted)


def all_values(proto, model, asked=None):
    """Return the results of a listed model's nodes in onnxruntime and their inputs, by name; and what is known.

    Args:
        proto: the model, without branches.
        model: what the list says of it.
        asked: what some inputs are given instead.
    """
    shown = onnx.ModelProto.FromString(proto.SerializeToString())
    outputs = {item.name for item in proto.graph.output}
    everything = [name for node in proto.graph.node for name in node.output if name]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in everything if name not in outputs)
    session = session_of(shown.SerializeToString())
    feeds, known = feeds_of(model, session)
    feeds.update(asked or {})
    names = [item.name for item in session.get_outputs()]
    return {**feeds, **dict(zip(names, session.run(None, feeds), strict=True))}, known


def without_branches(proto, model):
    """The same model with the branch that is taken in place of each If of a known input."""
    nodes = []
    for node in proto.graph.node:
        told = model.inputs.get(node.input[0], "") if node.op_type == "If" else ""
        if not told.startswith("known"):
            nodes.append(node)
            continue
        name = "then_branch" if "True" in told else "else_branch"
        (branch,) = (item.g for item in node.attribute if item.name == name)
        nodes += branch.node
        nodes += [
            helper.make_node("Identity", [inner.name], [outer])
            for inner, outer in zip(branch.output, node.output, strict=True)
            if inner.name != outer
        ]
        proto.graph.initializer.extend(branch.initializer)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return proto


def taken_apart(proto, values, known):
    """A model of the same nodes, none of which hangs on another: its inputs' values, and what each gives.

    Integers of 32 and 64 bits and truths that are no inputs are known, as shapes and axes have to be.
    """
    nodes, inputs, initializers, wanted = [], {}, list(proto.graph.initializer), {}
    constants = {item.name for item in initializers}
    for node in proto.graph.node:
        if node.op_type == "Constant" or not all(_is_full(values.get(name)) for name in node.output if name):
            continue
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        inputs.update({name: values[name] for name in copy.input if name and name not in constants})
        for index, name in enumerate(copy.output):
            if name:
                copy.output[index] = f"{name} apart"
                wanted[copy.output[index]] = values[name]
        nodes.append(copy)
    floats = {}
    for name, value in inputs.items():
        if (
            name in known
            or (value.dtype.kind in "ib" and value.dtype.itemsize != 1 and value.ndim < 2)
            or not value.size
        ):
            initializers.append(numpy_helper.from_array(value, name))
        else:
            floats[name] = value
    graph = helper.make_graph(
        nodes,
        "nodes apart",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in floats.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in wanted],
        initializers,
    )
    made = helper.make_model(graph, opset_imports=proto.opset_import, ir_version=proto.ir_version)
    made.functions.extend(proto.functions)
    return made, floats, wanted


def _is_full(value):
    return isinstance(value, np.ndarray) and value.size > 0


def _told(ours, wanted):
    floats, steps = {"": 0.0}, {"": 0}
    for name, theirs in wanted.items():
        if theirs.dtype.kind == "f":
            floats[name] = difference(ours[name], theirs)
        elif theirs.shape != ours[name].shape:
            steps[name] = np.iinfo(np.int64).max
        else:
            steps[name] = int(np.abs(ours[name].astype(np.int64) - theirs.astype(np.int64)).max())
    where = max(floats, key=floats.get), max(steps, key=steps.get)
    return Apart(len(wanted), floats[where[0]], steps[where[1]], where)
