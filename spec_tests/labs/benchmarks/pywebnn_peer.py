"""Run by an interpreter that has pywebnn: prints a JSON object of median seconds, by the benchmarks' names."""

import json
import statistics
from time import perf_counter

import numpy as np
import webnn


def median(call, runs):
    samples = []
    for _ in range(runs):
        started = perf_counter()
        call()
        samples.append(perf_counter() - started)
    return statistics.median(samples)


def chain(operators, size):
    """A function that writes, dispatches and reads a chain of operators on ``size`` floats."""
    context = webnn.ML().create_context(device_type="cpu")
    builder = context.create_graph_builder()
    value = builder.input("x", [size], "float32")
    half = builder.constant(np.full(size, 0.5, np.float32))
    for operator in operators:
        value = getattr(builder, operator)(value, half)
    graph = builder.build({"y": value})
    x = context.create_tensor([size], "float32", readable=True, writable=True)
    y = context.create_tensor([size], "float32", readable=True, writable=True)
    data = np.ones(size, np.float32)

    def run():
        context.write_tensor(x, data)
        context.dispatch(graph, {"x": x}, {"y": y})
        return context.read_tensor(y)

    return run


def lives():
    for _ in range(200):
        chain(["add"], 4)()


print(
    json.dumps(
        {
            "1-element add: write + dispatch + read": median(chain(["add"], 1), 300),
            "50 element-wise operators on 1,000 floats": median(chain(["mul", "add"] * 25, 1000), 200),
            "200 × (context, build, dispatch, read, destroy)": median(lives, 3),
        }
    )
)
