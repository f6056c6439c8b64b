"""Rows a second of the example of many machines, on one GPU and on several of one host.

``python -m spec_tests.labs.benchmarks.many_machines [--gpus 2]``; needs the extra ``ray``. A row passes
LAYERS products of WIDTH². Counted are the rows that are done from when all actors have done their first batches until
the first of them has done its last.
"""

import itertools
import os
from time import time

import numpy as np
import ray
import ray.data

from spec_tests.labs.benchmarks.measure import parser
from spec_tests.support.onnx_programs import program
from spec_tests.support.ray_cluster import load_example

WIDTH, LAYERS, FEATURES = 2048, 24, 64
ROWS, BATCHES_OF_A_BLOCK = 2048, 12  # a block takes Ray about 20 ms to hand out


def model():
    """Write products in a row, all by the same square matrix, which keeps lengths."""
    rng = np.random.default_rng(1)
    first = rng.standard_normal((FEATURES, WIDTH), np.float32)
    square = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH), np.float32))[0]
    last = rng.standard_normal((WIDTH, 4), np.float32)
    names = ["x", *(f"h{layer}" for layer in range(LAYERS + 1)), "y"]
    weights = ["first", *["square"] * LAYERS, "last"]
    nodes = [
        ("MatMul", [before, weight], [after], {})
        for (before, after), weight in zip(itertools.pairwise(names), weights, strict=True)
    ]
    return program(
        nodes,
        {"x": ("float32", ["rows", FEATURES])},
        {"y": ("float32", ["rows", 4])},
        {"first": first, "square": square, "last": last},
    )


def rate(example, data, gpus):
    """Return rows a second while all actors are at work, how many actors there were, and the whole time."""
    began = time()
    table = example.predict(data, model(), gpus=gpus, rows=ROWS).select_columns(["done", "process"]).to_pandas()
    whole = time() - began
    batches = table.groupby(["process", "done"]).size().reset_index(name="rows")
    ends = batches.groupby("process")["done"].agg(["min", "max"])
    start, end = ends["min"].max(), ends["max"].min()
    within = batches[(batches["done"] > start) & (batches["done"] <= end)]
    return within["rows"].sum() / (end - start), len(ends), whole


def main():
    """Print a line for one GPU, a line for several, and their ratio; in turn, twice."""
    arguments = parser("many_machines", __doc__)
    arguments.add_argument("--gpus", type=int, default=2)
    arguments.add_argument("--batches", type=int, default=1200)
    arguments = arguments.parse_args()
    example = load_example()

    class Timed(example.Predictor):
        """Notes of each row when it was done, and by which process."""

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self({"x": np.zeros((ROWS, FEATURES), np.float32)})  # so that the graph is compiled

        def __call__(self, batch):
            done = super().__call__(batch)
            size = len(batch["x"])
            return {"done": np.full(size, time()), "process": np.full(size, os.getpid()), "y": done["y"]}

    example.Predictor = Timed
    ray.init(num_gpus=arguments.gpus, include_dashboard=False, log_to_driver=False)
    x = np.random.default_rng(2).random((arguments.batches * ROWS, FEATURES), np.float32)
    data = (
        ray.data.from_numpy(np.array_split(x, arguments.batches // BATCHES_OF_A_BLOCK))
        .rename_columns({"data": "x"})
        .materialize()
    )
    for _ in range(2):
        one, several = (rate(example, data, gpus) for gpus in (1, arguments.gpus))
        for rows, processes, whole in (one, several):
            print(f"{processes} GPUs: {rows:,.0f} rows/s, {whole:.1f} s with start")
        print(f"ratio {several[0] / one[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
