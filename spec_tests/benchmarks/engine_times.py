"""Builds and runs of a model here and in onnxruntime itself, in turn, by processor time."""

import gc
import statistics
from time import process_time

import attrs
import numpy as np
import trio.testing

from spec_tests.benchmarks.engine import NO_STATE, contender, itself
from spec_tests.benchmarks.measure import as_text


@attrs.frozen
class Effort:
    """How often a model is built, and how long it runs.

    Attributes:
        builds: how often on either side.
        seconds: the processor's, of all runs together.
        runs: so many on either side at least.
    """

    builds: int = 9
    seconds: float = 2
    runs: int = 10


async def taken(call):
    """Seconds of the processor."""
    began = process_time()
    result = call()
    if result is not None:
        await result
    return process_time() - began


async def times(context, path, draw, state=NO_STATE, effort=Effort()):
    """Of ours and of onnxruntime: the medians of the runs, and of the builds.

    Before each build the model is drawn anew, garbage collected and what the build before has made released, and they
    take turns in being first: neither finds more in the caches than the other.

    Args:
        context: where it is built.
        path: of the model.
        draw: gives a builder, the outputs, and what the inputs are given, here and there.
        state: which output is the next run's which input.
        effort: how much is measured.
    """
    calls, builds = [None, None], [[], []]
    for turn in range(effort.builds):
        for side in (0, 1) if turn % 2 else (1, 0):
            calls[side] = None
            builder, outputs, feeds, theirs = draw()
            gc.collect()
            await trio.testing.wait_all_tasks_blocked()  # what is released is gone
            if side == 0:
                made = await contender(context, builder, outputs, feeds, state, clock=process_time)
            else:
                made = itself(str(path), theirs, 1, state, clock=process_time)
            calls[side], seconds = made
            builds[side].append(seconds)
    runs, began = [[], []], process_time()
    while process_time() - began < effort.seconds or len(runs[0]) < effort.runs:
        for samples, call in zip(runs, calls, strict=True):
            samples.append(await taken(call))
    return ([statistics.median(samples) for samples in kind] for kind in (runs, builds))


class Table:
    """Prints the ratios of models as they come, and their geometric means."""

    def __init__(self):
        self._ratios = []
        print("| | webnn_py | onnxruntime | | build | session | |\n|---|---|---|---|---|---|---|")

    def add(self, name, runs, builds):
        """Print a model's line; of runs and builds ours and theirs."""
        self._ratios.append((runs[0] / runs[1], builds[0] / builds[1]))
        cells = [name]
        for seconds, ratio in zip((runs, builds), self._ratios[-1], strict=True):
            cells += [*map(as_text, seconds), f"{ratio:.2f} ×"]
        print(f"| {' | '.join(cells)} |", flush=True)

    def end(self):
        """Print the means."""
        run, made = np.exp(np.log(self._ratios).mean(0))
        print(f"| geometric mean | | | {run:.2f} × | | | {made:.2f} × |")
