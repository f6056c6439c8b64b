"""Gains of each optional pass of the onnxruntime or numpy device on real models.

``python -m spec_tests.labs.benchmarks.passes [--backend numpy]``, for numpy with ``OPENBLAS_NUM_THREADS=1``; of numpy
the special routines of ``numpy_routines.py``, too.

Each model is built with all passes, and once without each that changes it; all of these run in turn. A ratio above 1
says that the model is slower without the pass. WORDs choose models of ``spec_tests/labs/real_models/models.toml``.
"""

import argparse
import gc
import statistics
from collections import defaultdict
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import trio

from spec_tests.labs.benchmarks.effective_passes import effective_passes
from spec_tests.labs.benchmarks.engine import NO_STATE, contender
from spec_tests.labs.benchmarks.engine_listed_models import chosen, drawn, fed
from spec_tests.labs.benchmarks.engine_times import taken
from spec_tests.labs.benchmarks.measure import as_text
from spec_tests.labs.benchmarks.numpy_routines import ROUTINES, routines_left_out
from spec_tests.labs.real_models.comparison import feeds_of, session_of
from webnn_py import open_ml
from webnn_py.device.on_numpy.passes import pipeline as numpy_pipeline
from webnn_py.device.on_onnxruntime.passes import pipeline as onnxruntime_pipeline
from webnn_py.rewriting.passes import passes_left_out

LEAST_RUNS = 7
OPTIONAL = {
    "onnxruntime": (*onnxruntime_pipeline.PASSES.optional, *onnxruntime_pipeline.NODE_PASSES.optional),
    "numpy": (*numpy_pipeline.PASSES.optional, *ROUTINES),
}
"""The names that are left out, by device."""


async def ratios_of(context, draw, feed, optional, seconds):
    """Seconds of a run with all passes, and by pass how many times as long runs and builds take without it."""

    async def built(*names):
        builder, outputs = draw()
        feeds, _ = feed(outputs)
        gc.collect()
        with passes_left_out(*names), routines_left_out(*names):
            return await contender(context, builder, outputs, feeds, NO_STATE, clock=process_time)

    with effective_passes() as changing:
        await built()
    variants = [(), *((name,) for name in optional if name in changing or name in ROUTINES)]
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
            samples.append(await taken(call))
    (run, *others), (build, *builds) = (list(map(statistics.median, kind)) for kind in (runs, builds))
    names = [name for (name,) in variants[1:]]
    pairs = zip(others, builds, strict=True)
    return run, {name: (one / run, other / build) for name, (one, other) in zip(names, pairs, strict=True)}


async def measure(options):
    found, optional = defaultdict(dict), OPTIONAL[options.backend]
    own = {"threads": 1} if options.backend == "onnxruntime" else {}
    print("| | all passes | without: run, build |\n|---|---|---|")
    async with open_ml() as ml:
        for name, model, path in chosen(options):
            given, known = feeds_of(model, session_of(str(path)))
            context = await ml.create_context(backend=options.backend, **own)
            draw = partial(drawn, context, model, path, given, known)
            try:
                ratios = await ratios_of(context, draw, partial(fed, given), optional, options.seconds)
            except Exception as error:  # noqa: BLE001 - onnxruntime's, of a shape that it refuses to bind
                print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
                ratios = None
            if ratios is not None:
                run, by_pass = ratios
                cells = ", ".join(f"{one} {took:.2f} {made:.2f}" for one, (took, made) in by_pass.items())
                print(f"| {name} | {as_text(run)} | {cells} |", flush=True)
                for one, both in by_pass.items():
                    found[one][name] = both
            context.destroy()
    _summarize(found, optional)


def _summarize(found, optional):
    print("\n| pass | models | run, mean | models over 1.10 | largest | second largest | build, mean |")
    print("|---|---|---|---|---|---|---|")
    for name in optional:
        if name in found:
            runs, builds = np.array([*found[name].values()]).T
            means = np.exp(np.log([runs, builds]).mean(1))
            largest = " | ".join(f"{ratio:.2f}" for ratio in [*sorted(runs, reverse=True), 1][:2])
            print(f"| {name} | {len(runs)} | {means[0]:.3f} | {(runs > 1.1).sum()} | {largest} | {means[1]:.2f} |")


def main():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks.passes", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--backend", choices=[*OPTIONAL], default="onnxruntime")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "webnn_py" / "real_models")
    parser.add_argument("--largest", type=float, default=45, help="megabytes of a file (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1, help="for each variant (default: %(default)s)")
    trio.run(measure, parser.parse_args())


if __name__ == "__main__":
    main()
