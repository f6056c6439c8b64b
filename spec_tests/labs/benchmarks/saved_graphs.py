"""``python -m spec_tests.labs.benchmarks.saved_graphs [MODEL.onnx]``: a process's way to its first result.

Each process draws and builds a model, or loads it from a folder of saved graphs, and runs it once; drivers keep what
they have compiled from one process to the next in both. Without a file, the model is a synthetic one of 1,500 nodes.
Times are medians; those of the processors count all threads.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from time import perf_counter, process_time

import numpy as np
import trio

NODES = 1500
STEPS = ("import webnn_py", "context", "draw", "build", "load", "first run", "second run")


class Clock:
    """Wall and processor time of each step."""

    def __init__(self):
        self.taken = {}
        self._last = perf_counter(), process_time()

    def note(self, step):
        now = perf_counter(), process_time()
        self.taken[step] = [now[0] - self._last[0], now[1] - self._last[1]]
        self._last = now


def synthetic(builder):
    """Draw blocks of six nodes: convolutions of many widths, activations, a mean over each image, products, sums."""
    rng = np.random.default_rng(0)
    x = builder.input("x", data_type="float32", shape=[1, 16, 8, 8])
    for block in range(NODES // 6):
        channels, size = 16 + block * 4 % 64, 3 if block % 2 else 1
        weight = (rng.standard_normal((channels, x.shape[1], size, size)) * 0.05).astype(np.float32)
        bias = builder.constant(np.zeros(channels, np.float32))
        y = builder.conv2d(x, builder.constant(weight), bias=bias, padding=[size // 2] * 4)
        y = builder.hard_swish(y)
        y = builder.mul(y, builder.sigmoid(builder.average_pool2d(y)))
        x = builder.add(y, builder.constant(np.full((1, channels, 1, 1), 0.1, np.float32)))
    return {"y": builder.identity(x)}


async def run_once(clock, backend, model, folder, way):
    """Get to the first result, and to a second."""
    import webnn_py  # noqa: PLC0415 - is measured
    from webnn_py.saved_graphs import SavedGraphs  # noqa: PLC0415 - is measured

    saved = SavedGraphs(folder)
    clock.note("import webnn_py")
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        clock.note("context")
        if way == "loaded":
            graph = await saved.load(context, "model")
            clock.note("load")
        else:
            builder = webnn_py.MLGraphBuilder(context)
            outputs = onnx_outputs(model, builder) if model else synthetic(builder)
            clock.note("draw")
            graph = await builder.build(outputs, keep_source=saved.needs_source(context))
            clock.note("build")
        inputs, outputs = [
            {
                name: await context.create_buffer(data_type=d.data_type, shape=d.shape, **{access: True})
                for name, d in descriptors.items()
            }
            for access, descriptors in (("writable", graph.input_descriptors), ("readable", graph.output_descriptors))
        ]
        rng = np.random.default_rng(1)
        for buffer in inputs.values():
            context.write_buffer(buffer, rng.standard_normal(buffer.shape).astype(buffer.data_type))
        for step in STEPS[-2:]:
            context.dispatch(graph, inputs, outputs)
            results = [await context.read_buffer(buffer) for buffer in outputs.values()]
            clock.note(step)
        if way == "saved":
            await saved.save("model", graph)
        context.destroy()
    return float(sum(np.abs(result.astype(np.float64)).sum() for result in results))


def onnx_outputs(model, builder):
    from webnn_py.onnx_models import OnnxModel  # noqa: PLC0415 - is measured, where it is needed

    return OnnxModel.load(model).convert(builder)


def process(backend, model, folder, way):
    """Return what a fresh interpreter takes for each step."""
    command = [sys.executable, "-m", __spec__.name, "--backend", backend, "--child", folder, way]
    command += filter(None, [model])
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def measure(backend, model, runs):
    """Print a table."""
    taken = {"anew": [], "loaded": []}
    with tempfile.TemporaryDirectory() as folder:
        expected = process(backend, model, folder, "saved")["result"]
        for _ in range(runs):
            for way, results in taken.items():
                results.append(process(backend, model, folder, way))
    assert {result["result"] for results in taken.values() for result in results} == {expected}, "results differ"
    print(f"\n{backend}, ms (processors' ms):\n\n| | {' | '.join(taken)} |\n|---|---|---|")
    median = {
        way: {
            step: [statistics.median(one["taken"].get(step, [0, 0])[kind] for one in results) * 1e3 for kind in (0, 1)]
            for step in STEPS
        }
        for way, results in taken.items()
    }
    for step in STEPS:
        print(f"| {step} | {' | '.join('{:.0f} ({:.0f})'.format(*median[way][step]) for way in taken)} |")
    for title, first in (("from the context to the first result", 2), ("from the start to the first result", 0)):
        sums = {way: [sum(median[way][step][kind] for step in STEPS[first:-1]) for kind in (0, 1)] for way in taken}
        ratios = [anew / loaded for anew, loaded in zip(sums["anew"], sums["loaded"], strict=True)]
        cells = " | ".join("{:.0f} ({:.0f})".format(*sums[way]) for way in taken)
        print(f"| {title}: {ratios[0]:.2f} × ({ratios[1]:.2f} ×) | {cells} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", action="append", help="a device; default: numpy and wgpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "WAY"), help=argparse.SUPPRESS)
    parser.add_argument("model", nargs="?", help="an ONNX file")
    options = parser.parse_args()
    backends = options.backend or ["numpy", "wgpu"]
    if options.child is None:
        for backend in backends:
            measure(backend, options.model, options.runs)
        return
    clock = Clock()
    result = trio.run(run_once, clock, backends[0], options.model, *options.child)
    print(json.dumps({"taken": clock.taken, "result": result}))


if __name__ == "__main__":
    main()
