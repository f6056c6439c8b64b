"""Gains of each optional pass of the onnxruntime or numpy device on real models.

``python -m spec_tests.labs.benchmarks.passes [--backend numpy]``, for numpy with ``OPENBLAS_NUM_THREADS=1``.

Each model is built with all passes, and once without each that changes it; all of these run in turn. A ratio above 1
says that the model is slower without the pass. WORDs choose models of ``spec_tests/labs/real_models/models.toml``.
"""

import gc
import statistics
from collections import defaultdict
from time import perf_counter, process_time

import numpy as np
import trio

from spec_tests.labs.benchmarks.effective_passes import effective_passes
from spec_tests.labs.benchmarks.engine_listed_models import for_each, parser_of_listed
from spec_tests.labs.benchmarks.engine_times import contender
from spec_tests.labs.benchmarks.measure import as_text, head, row, seconds_of
from webnn_py.devices.numpy.passes import pipeline as numpy_pipeline
from webnn_py.devices.onnxruntime.passes import pipeline as onnxruntime_pipeline
from webnn_py.devices.rewriting.passes import passes_left_out

LEAST_RUNS = 7
OPTIONAL = {
    "onnxruntime": (*onnxruntime_pipeline.PASSES.optional, *onnxruntime_pipeline.NODE_PASSES.optional),
    "numpy": numpy_pipeline.PASSES.optional,
}
"""The names that are left out, by device."""


async def ratios_of(context, draw, feed, optional, seconds):
    """Return seconds of a run with all passes, and by pass how many times as long runs and builds take without it."""

    async def built(*names):
        drawn = draw()
        feeds, _ = feed(drawn[1])
        gc.collect()
        with passes_left_out(*names):
            return await contender(context, drawn, feeds)

    with effective_passes() as changing:
        await built()
    variants = [(), *((name,) for name in optional if name in changing)]
    if len(variants) == 1:
        return None
    made = [await built(*names) for names in variants]
    builds = [[took] for _, took in made]
    for _ in range(2):
        for names, samples in zip(variants, builds, strict=True):
            samples.append((await built(*names))[1])
    runs, began = [[] for _ in variants], perf_counter()
    while perf_counter() - began < seconds * len(variants) or len(runs[0]) < LEAST_RUNS:
        for (call, _), samples in zip(made, runs, strict=True):
            samples.append(await seconds_of(call, process_time))
    (run, *others), (build, *builds) = (list(map(statistics.median, kind)) for kind in (runs, builds))
    names = [name for (name,) in variants[1:]]
    pairs = zip(others, builds, strict=True)
    return run, {name: (one / run, other / build) for name, (one, other) in zip(names, pairs, strict=True)}


async def measure(options):
    found, optional = defaultdict(dict), OPTIONAL[options.backend]
    print(head("", "all passes", "without: run, build"))

    async def compare(name, context, _path, draw, feed):
        ratios = await ratios_of(context, draw, feed, optional, options.seconds)
        if ratios is not None:
            run, by_pass = ratios
            cells = ", ".join(f"{one} {took:.2f} {made:.2f}" for one, (took, made) in by_pass.items())
            print(row(name, as_text(run), cells), flush=True)
            for one, both in by_pass.items():
                found[one][name] = both

    await for_each(options, compare)
    print("\n" + head("pass", "models", "run, mean", "models over 1.10", "largest", "second largest", "build, mean"))
    for name in optional:
        if name in found:
            runs, builds = np.array([*found[name].values()]).T
            means = np.exp(np.log([runs, builds]).mean(1))
            largest = [f"{ratio:.2f}" for ratio in [*sorted(runs, reverse=True), 1][:2]]
            print(row(name, len(runs), f"{means[0]:.3f}", (runs > 1.1).sum(), *largest, f"{means[1]:.2f}"))


def main():
    arguments = parser_of_listed("passes", __doc__, [*OPTIONAL])
    arguments.add_argument("--seconds", type=float, default=1, help="for each variant (default: %(default)s)")
    trio.run(measure, arguments.parse_args())


if __name__ == "__main__":
    main()
