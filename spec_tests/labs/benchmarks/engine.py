"""The onnxruntime device beside numpy's and beside onnxruntime itself: ``python -m spec_tests.labs.benchmarks.engine``.

onnxruntime itself is a session with bound inputs and outputs, its optimizations as they are by default, and as many
threads. Everything of one row is timed in turn in one process, from host to host; medians. Models of one's own are
added as paths: ``python -m spec_tests.labs.benchmarks.engine MODEL.onnx=1x3x224x224 …``.
"""

import argparse
import math
from functools import partial
from itertools import cycle
from pathlib import Path
from time import perf_counter

import magika
import numpy as np
import onnxruntime
import trio

from spec_tests.labs.benchmarks.measure import OURS, Result, compare, table
from webnn_py import MLGraphBuilder, MLPromise, open_ml
from webnn_py.onnx_models import OnnxModel, to_model
from webnn_py.script.builder import drawing_of

MAGIKA = Path(magika.__file__).parent / "models/standard_v3_3/model.onnx"
RNG = np.random.default_rng(7)
LAYERS, WIDTH, HEADS, TOKENS = 6, 384, 12, 64
"""Those of the smallest usual sentence model."""
NO_STATE = {}
"""Which outputs of a model are its inputs of the next run, by name: none."""


def one_add(builder):
    x = builder.input("x", data_type="float32", shape=[1])
    return {"y": builder.add(x, builder.constant(np.ones(1, np.float32)))}


def fifty(builder):
    x = builder.input("x", data_type="float32", shape=[1000])
    y = x
    for index in range(50):
        other = x if index % 5 else builder.constant(np.float32(index))
        y = (builder.add, builder.mul, builder.sub, builder.max, builder.min)[index % 5](y, other)
    return {"y": y}


def sentence(builder):
    """A transformer of the usual kind."""
    y = builder.input("x", data_type="float32", shape=[1, TOKENS, WIDTH])
    for _ in range(LAYERS):
        y = _normalized(builder, builder.add(y, _attention(builder, y)))
        inner = builder.gelu(_linear(builder, y, 4 * WIDTH))
        y = _normalized(builder, builder.add(y, _linear(builder, inner, WIDTH)))
    return {"y": y}


def _weight(builder, *shape):
    return builder.constant((RNG.normal(size=shape) / math.sqrt(shape[0])).astype(np.float32))


def _linear(builder, x, size):
    return builder.add(builder.matmul(x, _weight(builder, x.shape[-1], size)), _weight(builder, size))


def _normalized(builder, x):
    return builder.layer_normalization(x, scale=_weight(builder, WIDTH), bias=_weight(builder, WIDTH), axes=[2])


def _attention(builder, x):
    def heads():
        split = builder.reshape(_linear(builder, x, WIDTH), [1, TOKENS, HEADS, WIDTH // HEADS])
        return builder.transpose(split, permutation=[0, 2, 1, 3])

    scores = builder.matmul(heads(), builder.transpose(heads(), permutation=[0, 1, 3, 2]))
    scaled = builder.mul(scores, builder.constant(np.float32(1 / math.sqrt(WIDTH / HEADS))))
    weighted = builder.transpose(builder.matmul(builder.softmax(scaled, 3), heads()), permutation=[0, 2, 1, 3])
    return _linear(builder, builder.reshape(weighted, [1, TOKENS, WIDTH]), WIDTH)


def of_file(path, shape, builder):
    """A model; of one with several open inputs all get the same shape."""
    model = OnnxModel.load(path)
    return model.convert(builder, input_shapes=dict.fromkeys(model.inputs, shape))


async def contender(context, builder, outputs, feeds, state=NO_STATE, *, clock=perf_counter):
    """What computes the outputs from host to host, and the seconds of the build; state stays on the device."""
    began = clock()
    graph = await builder.build(outputs)
    seconds = clock() - began
    given = {
        name: await context.create_buffer(data_type=array.dtype.name, shape=array.shape, writable=True)
        for name, array in feeds.items()
    }
    targets = {
        name: await context.create_buffer(data_type=item.data_type, shape=item.shape, readable=True)
        for name, item in graph.output_descriptors.items()
    }
    read = [target for name, target in targets.items() if name not in state]
    written = {name: buffer for name, buffer in given.items() if name not in state.values()}
    turns = cycle([(given, targets), _swapped(given, targets, state)] if state else [(given, targets)])

    async def run():
        inputs, outputs = next(turns)
        for name, buffer in written.items():
            context.write_buffer(buffer, feeds[name])
        context.dispatch(graph, inputs, outputs)
        await MLPromise.all([context.read_buffer(target) for target in read])

    return run, seconds


def _swapped(inputs, outputs, state):
    """The same with the buffers of the state before and after in each other's places."""
    before = {into: outputs[out] for out, into in state.items()}
    after = {out: inputs[into] for out, into in state.items()}
    return {**inputs, **before}, {**outputs, **after}


def _numbers(descriptor):
    numbers = np.random.default_rng(3).integers(0, 100, descriptor.shape)
    return (numbers / 100 if descriptor.data_type.startswith("float") else numbers).astype(descriptor.data_type)


def itself(model, feeds, threads, state=NO_STATE, *, clock=perf_counter):
    """The same by onnxruntime, and the seconds that its session took.

    A model with state has two bindings that take turns, on the same memory; one with outputs that are no tensors runs
    without.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    began = clock()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    seconds = clock() - began
    if not all(item.type.startswith("tensor") for item in session.get_outputs()):  # a map, say, which cannot be bound
        return partial(session.run, None, feeds), seconds
    bound = {name: array.copy() for name, array in feeds.items()}
    inputs = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in bound.items()}
    kept = {out: onnxruntime.OrtValue.ortvalue_from_numpy(bound[into].copy()) for out, into in state.items()}
    names = [item.name for item in session.get_outputs()]
    read = [index for index, name in enumerate(names) if name not in state]
    written = [name for name in bound if name not in state.values()]
    places = [(inputs, kept), _swapped(inputs, kept, state)] if state else [(inputs, kept)]
    turns = cycle([_binding(session, names, *given) for given in places])

    def run():
        binding = next(turns)
        for name in written:
            np.copyto(bound[name], feeds[name])
        session.run_with_iobinding(binding)
        values = binding.get_outputs()
        for index in read:
            values[index].numpy()

    return run, seconds


def _binding(session, names, inputs, kept):
    """Inputs bound to these values, and outputs to those, or where onnxruntime puts them."""
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    for name in names:
        if name in kept:
            binding.bind_ortvalue_output(name, kept[name])
        else:
            binding.bind_output(name)
    return binding


async def row(ml, name, draw, model, *, runs, threads):
    """The runs of one drawing, and its builds."""
    contenders, builds = {}, {}
    for title, options in ((OURS, {"backend": "onnxruntime", "threads": threads}), ("numpy", {"backend": "numpy"})):
        context = await ml.create_context(**options)
        builder = MLGraphBuilder(context)
        outputs = draw(builder)
        feeds = {item.name: _numbers(item.descriptor) for item in drawing_of("engine", outputs).inputs.values()}
        written = to_model(outputs).SerializeToString() if model is None else model
        contenders[title], builds[title] = await contender(context, builder, outputs, feeds)
    contenders["onnxruntime"], builds["onnxruntime"] = itself(written, feeds, threads)
    result = await compare(name, contenders, runs=runs)
    return [result, Result(f"{name}: build", builds)]


async def measure(arguments):
    cases = [*CASES, *map(of_argument, arguments.models)]
    results = []
    async with open_ml() as ml:
        for name, draw, model, runs in cases:
            results += await row(ml, name, draw, model, runs=runs, threads=arguments.threads)
    print(table(results))


def of_argument(given):
    path, _, shape = given.rpartition("=")
    sizes = [int(size) for size in shape.split("x")]
    return Path(path).stem, partial(of_file, path, sizes), Path(path).read_bytes(), 20


CASES = [
    ("1-element add", one_add, None, 2000),
    ("50 element-wise operators on 1,000 floats", fifty, None, 1000),
    (f"sentence model, {LAYERS} layers of {WIDTH}, {TOKENS} tokens", sentence, None, 40),
    ("magika", partial(of_file, MAGIKA, [1, 2048]), MAGIKA.read_bytes(), 40),
]


def main():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks.engine", description=__doc__)
    parser.add_argument(
        "models", nargs="*", metavar="PATH=SHAPE", help="further models, with the shape of their inputs"
    )
    parser.add_argument("--threads", type=int, default=1)
    trio.run(measure, parser.parse_args())


if __name__ == "__main__":
    main()
