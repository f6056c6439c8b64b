"""``python -m spec_tests.labs.benchmarks.subgraphs``: what the name of a sub-graph saves, on a decoder's attention.

Layers of grouped-query attention in operators of the specification, each a call of one definition: as "GQA", which a
device may run whole, and by a name that says nothing. Both graphs run in turn, each with one buffer for a cache before
and after where its ``in_place`` allows it, and their results are compared. Times are medians; those of the processor
count all threads.
"""

import statistics
import sys
from time import perf_counter, process_time

import attrs
import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks.measure import head, parser, row
from spec_tests.support.grouped_attention import Sizes, define
from webnn_py.extensions.subgraph import subgraph, uses_of

NAMES = {"GQA": "whole", "attention of mine": "as drawn"}


@attrs.frozen
class Built:
    """A graph of layers, and the seconds of the processor that its build took."""

    graph: webnn_py.MLGraph
    build_seconds: float


async def built(context, sizes, layers, name):
    """Build layers: the output of each is the queries of the next; each has a cache of its own."""
    builder = webnn_py.MLGraphBuilder(context)
    operands = sizes.inputs(builder)
    config = {"do_rotary": True, "num_heads": sizes.heads, "kv_num_heads": sizes.key_heads}
    definition = define(builder, operands, config, name)
    outputs, query = {}, operands["query"]
    for layer in range(layers):
        shape = sizes.shapes()["past_key"]
        pasts = {
            each: builder.input(f"{each}{layer}", data_type=sizes.data_type, shape=shape)
            for each in ("past_key", "past_value")
        }
        drawn = subgraph(builder, definition, {**operands, **pasts, "query": query}, label=f"layer {layer}")
        outputs |= {f"{each}{layer}": drawn[each] for each in ("present_key", "present_value")}
        query = drawn["output"]
    began = process_time()
    graph = await builder.build({**outputs, "output": drawn["output"]})
    return Built(graph, process_time() - began)


async def buffers_of(context, graph, feeds):
    """Return buffers with what a graph is given, and buffers for its outputs; caches are shared where they may be."""
    inputs, outputs = {}, {}
    for name, item in graph.input_descriptors.items():
        inputs[name] = await context.create_buffer(
            data_type=item.data_type, shape=item.shape, readable=True, writable=True
        )
        context.write_buffer(inputs[name], feeds[name.rstrip("0123456789")])
    for name, item in graph.output_descriptors.items():
        updated = graph.in_place.get(name)
        outputs[name] = inputs[updated] if updated else None
        if updated is None:
            outputs[name] = await context.create_buffer(data_type=item.data_type, shape=item.shape, readable=True)
    return inputs, outputs


async def compared(context, sizes, layers, begins, runs):
    """Return a row of the table for each name, and the largest difference between the results."""
    feeds = sizes.feeds(begins)
    contenders = {name: await built(context, sizes, layers, name) for name in NAMES}
    buffers = {name: await buffers_of(context, item.graph, feeds) for name, item in contenders.items()}
    wall = {name: [] for name in NAMES}
    processor = {name: [] for name in NAMES}
    results = {}
    for run in range(runs + 2):
        for name, item in contenders.items():
            inputs, outputs = buffers[name]
            began = perf_counter(), process_time()
            context.dispatch(item.graph, inputs, outputs)
            results[name] = await context.read_buffer(outputs["output"])
            if run >= 2:
                wall[name].append(perf_counter() - began[0])
                processor[name].append(process_time() - began[1])
    rows = []
    for name, item in contenders.items():
        counts = sum(1 if use.operator else use.operators for use in uses_of(item.graph))
        rows.append(
            (
                NAMES[name] if any(use.operator for use in uses_of(item.graph)) else "as drawn",
                counts,
                kernels_of(item.graph),
                f"{item.build_seconds * 1e3:.0f}",
                f"{statistics.median(wall[name]) * 1e3:.2f}",
                f"{statistics.median(processor[name]) * 1e3:.2f}",
            )
        )
    one, other = results.values()
    return rows, float(np.abs(one.astype(np.float64) - other).max())


def kernels_of(graph):
    """Return the number of kernels of a compiled graph, where the device says it."""
    plan = getattr(graph.handle.compiled, "plan", None)
    return "–" if plan is None else len(plan.kernels)


def main():
    arguments = parser("subgraphs", __doc__)
    arguments.add_argument("--backend", action="append", help="a device (default: numpy, onnxruntime and wgpu)")
    for name, default in (("layers", 4), ("heads", 32), ("key-heads", 4), ("size", 64), ("capacity", 1024)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    arguments.add_argument("--prompt", type=int, default=128, help="tokens of the prompt (default: %(default)s)")
    arguments.add_argument("--past", type=int, default=512, help="tokens before the step (default: %(default)s)")
    arguments.add_argument("--data-type", choices=["float32", "float16"], default="float32")
    arguments.add_argument("--runs", type=int, default=20)
    options = arguments.parse_args()
    trio.run(measured, options)


async def measured(options):
    sizes = Sizes(1, options.heads, options.key_heads, 1, options.size, options.capacity, options.data_type)
    of_runs = {"prompt": (attrs.evolve(sizes, new=options.prompt), [0]), "step": (sizes, [options.past])}
    print(head("device", "run", "attention", "operators", "kernels", "build ms", "run ms", "processor ms", "differ by"))
    async with webnn_py.open_ml(experimental={"subgraph"}) as ml:
        for backend in options.backend or ["numpy", "onnxruntime", "wgpu"]:
            context = await ml.create_context(backend=backend)
            for name, (each, begins) in of_runs.items():
                runs = options.runs if name == "step" else max(3, options.runs // 5)
                rows, difference = await compared(context, each, options.layers, begins, runs)
                for cells in rows:
                    print(row(backend, name, *cells, f"{difference:.1g}"), flush=True)
            print(context.backend, file=sys.stderr)
            context.destroy()


if __name__ == "__main__":
    main()
