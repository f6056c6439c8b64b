"""Builds and runs of a model here and in onnxruntime itself, and its way from the file, in turn, by processor time."""

import gc
import inspect
import statistics
from time import process_time

import attrs
import numpy as np
import trio.testing

from spec_tests.labs.benchmarks.engine import NO_STATE, contender, itself
from spec_tests.labs.benchmarks.measure import as_text


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
    if inspect.isawaitable(result):
        await result
    return process_time() - began


async def times(context, path, draw, feed, *, state=NO_STATE, effort=Effort()):
    """Of ours and of onnxruntime: the medians of the runs, of the builds, and of the ways from the file to a result.

    Before each build the model is drawn anew, garbage collected and what the build before has made released, and they
    take turns in being first: neither finds more in the caches than the other. A way from the file is loading,
    converting, building and the first run, with its buffers; onnxruntime's is making a session and the first run.

    Args:
        context: where it is built.
        path: of the model.
        draw: loads and converts it, and gives a builder and the outputs.
        feed: gives what the inputs are given, here and there, for these outputs.
        state: which output is the next run's which input.
        effort: how much is measured.
    """
    builder, outputs = draw()
    feeds, theirs = feed(outputs)
    calls, builds = [None, None], [[], []]
    for turn in range(effort.builds):
        for side in (0, 1) if turn % 2 else (1, 0):
            calls[side] = None
            builder, outputs = draw()
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
    ways = await _ways(context, path, draw, (feeds, theirs), state=state, effort=effort)
    return ([statistics.median(samples) for samples in kind] for kind in (runs, builds, ways))


async def _ways(context, path, draw, given, *, state, effort):
    """Seconds from the file to the first result, ours and theirs."""

    async def ours():
        run, _ = await contender(context, *draw(), given[0], state, clock=process_time)
        await run()

    def theirs():
        run, _ = itself(str(path), given[1], 1, state, clock=process_time)
        run()

    ways = [[], []]
    for turn in range(effort.builds):
        for side in (0, 1) if turn % 2 else (1, 0):
            gc.collect()
            await trio.testing.wait_all_tasks_blocked()  # what is released is gone
            ways[side].append(await taken((ours, theirs)[side]))
    return ways


class Table:
    """Prints the ratios of models as they come, and what they come to."""

    def __init__(self):
        self._ratios = []
        kinds = ("webnn_py | onnxruntime", "build | session", "file to first result | the same")
        print(f"| | {' | | '.join(kinds)} | |\n|{'---|' * 10}")

    def add(self, name, *kinds):
        """Print a model's line; of runs, builds and ways from the file ours and theirs."""
        self._ratios.append([ours / theirs for ours, theirs in kinds])
        cells = [name]
        for seconds, ratio in zip(kinds, self._ratios[-1], strict=True):
            cells += [*map(as_text, seconds), f"{ratio:.2f} ×"]
        print(f"| {' | '.join(cells)} |", flush=True)

    def end(self):
        """Print the means, the medians and the largest ratios."""
        ratios = np.array(self._ratios)
        for name, row in {
            "geometric mean": np.exp(np.log(ratios).mean(0)),
            "mean": ratios.mean(0),
            "median": np.median(ratios, 0),
            "largest": ratios.max(0),
        }.items():
            print(f"| {name} | | | {' | | | '.join(f'{ratio:.2f} ×' for ratio in row)} |")
