"""``python -m spec_tests.labs.benchmarks.constant_tensors``: memory and time that constant tensors save.

A decoder's layers, without their attention, are several graphs of the same weights: one for a step, one for a prompt,
and more for shorter prompts. Their weights are constants of each graph, from bytes; constant tensors of all graphs; or
constants that are recognized by a digest of their bytes, as importers draw them. Each way runs in a process of its own,
so that its memory can be measured. Times are of the processor, and count all threads, but the one by the clock.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import trio

from spec_tests.labs.benchmarks.measure import head, parser, row

WAYS = {"copied": "constants of each graph", "tensors": "constant tensors", "recognized": "recognized by their bytes"}
MIB = 2**20
COLUMNS = (
    *("device", "weights", "given, MiB", "on the device, MiB", "peak of the process, MiB"),
    *("constants, ms", "build, ms", "later builds, ms", "step, ms", "step by the clock, ms"),
)


def weights_of(width, layers, data_type):
    """Return the weights of all layers by name: four matrices for each."""
    rng = np.random.default_rng(0)
    shapes = {"qkv": (width, 2 * width), "out": (width, width), "up": (width, 3 * width), "down": (3 * width, width)}
    weights = {
        f"{name}{layer}": (rng.standard_normal(shape, np.float32) * 0.02).astype(data_type)
        for layer in range(layers)
        for name, shape in shapes.items()
    }
    for array in weights.values():
        array.flags.writeable = False
    return weights


def drawn(builder, weights, length):
    """Draw the layers for so many tokens; ``weights`` are operands by name."""
    first = weights["qkv0"]
    x = builder.input("x", data_type=first.data_type, shape=[length, first.shape[0]])
    for layer in range(len(weights) // 4):
        parts = builder.split(builder.matmul(x, weights[f"qkv{layer}"]), 2, axis=1)
        x = builder.add(x, builder.matmul(builder.mul(*parts), weights[f"out{layer}"]))
        inner = builder.gelu(builder.matmul(x, weights[f"up{layer}"]))
        x = builder.add(x, builder.matmul(inner, weights[f"down{layer}"]))
    return {"y": x}


class Ledger:
    """The cost of one way: bytes and seconds."""

    def __init__(self):
        self.given = 0
        self.seconds = {"constants": 0.0, "builds": []}

    async def timed(self, what, awaitable):
        """Await, and count the processor's time."""
        began = process_time()
        result = await awaitable
        taken = process_time() - began
        if what == "builds":
            self.seconds["builds"].append(taken)
        else:
            self.seconds[what] += taken
        return result


async def measured(options):
    """Build all graphs one way, run the step, and print the figures as JSON."""
    import webnn_py  # noqa: PLC0415 - it is loaded before memory is measured
    from webnn_py.core.graph import ContentKey  # noqa: PLC0415 - as above

    arrays = weights_of(options.width, options.layers, options.data_type)
    lengths = [1, *(options.prompt >> each for each in range(options.graphs - 1))]
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=options.backend[-1])
        await warmed(webnn_py, context, options.data_type)
        before, low = context.statistics().live_bytes, peak()
        ledger, buffers, graphs = Ledger(), {}, {}
        if options.way == "tensors":
            for name, array in arrays.items():
                promise = context.create_constant_buffer(array, data_type=options.data_type, shape=array.shape)
                buffers[name] = await ledger.timed("constants", promise)
                ledger.given += array.nbytes
        for length in lengths:
            builder = webnn_py.MLGraphBuilder(context)
            began = process_time()
            if options.way == "recognized":
                constants = {name: builder.constant_shared(array, ContentKey(array)) for name, array in arrays.items()}
            else:
                constants = {name: builder.constant(buffers.get(name, array)) for name, array in arrays.items()}
            outputs = drawn(builder, constants, length)
            ledger.seconds["constants"] += process_time() - began
            if options.way != "tensors":
                ledger.given += sum(array.nbytes for array in arrays.values())
            graphs[length] = await ledger.timed("builds", builder.build(outputs))
            del builder, constants, outputs
        for buffer in buffers.values():
            buffer.destroy()  # the graphs hold what they need
        await context.drain()
        live, high = context.statistics().live_bytes - before, peak() - low
        seconds = await step(context, graphs[1], options)
        print(json.dumps(figures(ledger, live, high, seconds)))


def figures(ledger, live, high, seconds):
    first, *later = ledger.seconds["builds"]
    return [
        *(f"{count / MIB:.0f}" for count in (ledger.given, live, high)),
        *(f"{each * 1e3:.0f}" for each in (ledger.seconds["constants"], first, statistics.mean(later))),
        *(f"{each * 1e3:.2f}" for each in seconds),
    ]


def peak():
    """Return the most bytes that the process has had in memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def warmed(webnn_py, context, data_type):
    """Build and run something small, so that nothing is loaded later."""
    builder = webnn_py.MLGraphBuilder(context)
    arrays = weights_of(64, 1, data_type)
    constants = {name: builder.constant(array) for name, array in arrays.items()}
    graph = await builder.build(drawn(builder, constants, 1))
    graph.destroy()
    await context.drain()


async def step(context, graph, options):
    """Return the median seconds of a step until its result is read: of the processor, and by the clock."""
    buffers = [
        await context.create_buffer(data_type=options.data_type, shape=[1, options.width], **{access: True})
        for access in ("writable", "readable")
    ]
    context.write_buffer(buffers[0], np.ones((1, options.width), options.data_type))
    taken = []
    for _ in range(options.runs):
        began = process_time(), perf_counter()
        context.dispatch(graph, {"x": buffers[0]}, {"y": buffers[1]})
        await context.read_buffer(buffers[1])
        taken.append((process_time() - began[0], perf_counter() - began[1]))
    return [statistics.median(each) for each in zip(*taken[2:], strict=True)]


def main():
    arguments = parser("constant_tensors", __doc__)
    arguments.add_argument("--backend", action="append", help="a device (default: numpy, onnxruntime and wgpu)")
    arguments.add_argument("--graphs", type=int, default=2, help="graphs of the same weights (default: %(default)s)")
    arguments.add_argument("--width", type=int, default=1024)
    arguments.add_argument("--layers", type=int, default=4)
    arguments.add_argument("--prompt", type=int, default=64, help="tokens of the longest prompt (default: %(default)s)")
    arguments.add_argument("--data-type", choices=["float32", "float16"], default="float32")
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--way", choices=[*WAYS], help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.way:
        trio.run(measured, options)
        return
    print(head(*COLUMNS))
    given = sys.argv[1:]
    for backend in options.backend or ["numpy", "onnxruntime", "wgpu"]:
        for way, words in WAYS.items():
            command = [sys.executable, "-m", f"spec_tests.labs.benchmarks.{Path(__file__).stem}"]
            last = [*given, "--backend", backend, "--way", way]
            run = subprocess.run([*command, *last], check=True, stdout=subprocess.PIPE, text=True)
            print(row(backend, words, *json.loads(run.stdout)), flush=True)


if __name__ == "__main__":
    main()
