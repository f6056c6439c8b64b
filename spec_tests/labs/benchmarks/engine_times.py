"""Builds and runs of a model here and in onnxruntime itself, and its way from the file, in turn, by processor time."""

import gc
import statistics
from functools import partial
from itertools import cycle
from time import process_time

import attrs
import numpy as np
import onnxruntime
import trio.testing

from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.measure import as_text, head, row, seconds_of
from spec_tests.labs.real_models.comparison import session_of
from webnn_py import MLPromise

NO_STATE = {}
"""The outputs of a model that are its inputs of the next run, by name: none."""


@attrs.frozen
class Effort:
    """The number of builds of a model, and the time for its runs.

    Attributes:
        builds: how often on either side.
        seconds: the processor's, of all runs together.
        runs: so many on either side at least.
    """

    builds: int = 9
    seconds: float = 2
    runs: int = 10


async def contender(context, drawn, feeds, state=NO_STATE):
    """Build a drawing; return what computes it from host to host, with its state on the device, and the seconds."""
    built = await Built.on_context(context, *drawn, feeds, clock=process_time)
    read = [target for name, target in built.outputs.items() if name not in state]
    written = {name: buffer for name, buffer in built.inputs.items() if name not in state.values()}
    turns = cycle(_turns(built.inputs, built.outputs, state))

    async def run():
        inputs, outputs = next(turns)
        for name, buffer in written.items():
            context.write_buffer(buffer, feeds[name])
        context.dispatch(built.graph, inputs, outputs)
        await MLPromise.all([context.read_buffer(target) for target in read])

    return run, built.seconds


def _turns(inputs, outputs, state):
    """Return the inputs and outputs of runs in turn: those of the state change places."""
    if not state:
        return [(inputs, outputs)]
    before = {into: outputs[out] for out, into in state.items()}
    after = {out: inputs[into] for out, into in state.items()}
    return [(inputs, outputs), ({**inputs, **before}, {**outputs, **after})]


def itself(model, feeds, state=NO_STATE):
    """Make onnxruntime's session, with bound inputs and outputs; return what runs it, and the seconds that it took.

    A model with state has two bindings that take turns, on the same memory; one with outputs that are no tensors runs
    without.
    """
    began = process_time()
    session = session_of(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    seconds = process_time() - began
    if not all(item.type.startswith("tensor") for item in session.get_outputs()):  # a map, say, which cannot be bound
        return partial(session.run, None, feeds), seconds
    bound = {name: array.copy() for name, array in feeds.items()}
    inputs = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in bound.items()}
    kept = {out: onnxruntime.OrtValue.ortvalue_from_numpy(bound[into].copy()) for out, into in state.items()}
    names = [item.name for item in session.get_outputs()]
    read = [index for index, name in enumerate(names) if name not in state]
    written = [name for name in bound if name not in state.values()]
    turns = cycle([_binding(session, names, *given) for given in _turns(inputs, kept, state)])

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
    """Bind inputs to these values, and outputs to those, or where onnxruntime puts them."""
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    for name in names:
        if name in kept:
            binding.bind_ortvalue_output(name, kept[name])
        else:
            binding.bind_output(name)
    return binding


async def times(context, model, draw, feed, *, state=NO_STATE, effort=Effort()):
    """Measure a model here and in onnxruntime: return medians of the runs, the builds, and the ways to a result.

    Before each build the model is drawn anew, garbage is collected and what the build before has made is released, and
    they take turns in being first: neither finds more in the caches than the other. A way from the file is loading,
    converting, building and the first run, with its buffers; onnxruntime's is making a session and the first run.

    Args:
        context: where it is built.
        model: the path or bytes of the model.
        draw: loads and converts it, and gives a builder and the outputs.
        feed: gives what the inputs are given, here and there, for these outputs.
        state: which output is the next run's which input.
        effort: how much is measured.
    """
    builder, outputs = draw()
    feeds, theirs = feed(outputs)
    del builder, outputs
    calls, builds, runs, ways = [None, None], [[], []], [[], []], [[], []]

    async def make(side, drawn=None):
        if side == 0:
            return await contender(context, drawn or draw(), feeds, state)
        return itself(model, theirs, state)

    async def first_result(side):
        run, _ = await make(side)
        await seconds_of(run)

    for turn in range(effort.builds):
        for side in (0, 1) if turn % 2 else (1, 0):
            calls[side] = None
            drawn = draw()
            await _settled()
            calls[side], seconds = await make(side, drawn)
            builds[side].append(seconds)
    began = process_time()
    while process_time() - began < effort.seconds or len(runs[0]) < effort.runs:
        for samples, call in zip(runs, calls, strict=True):
            samples.append(await seconds_of(call, process_time))
    for turn in range(effort.builds):
        for side in (0, 1) if turn % 2 else (1, 0):
            await _settled()
            ways[side].append(await seconds_of(lambda side=side: first_result(side), process_time))
    return ([statistics.median(samples) for samples in kind] for kind in (runs, builds, ways))


async def _settled():
    gc.collect()
    await trio.testing.wait_all_tasks_blocked()  # what is released is gone


class Table:
    """Prints the ratios of models as they come, and what they come to."""

    def __init__(self):
        self._ratios = []
        print(
            head("", *("webnn_py", "onnxruntime", "", "build", "session", "", "file to first result", "the same", ""))
        )

    def add(self, name, *kinds):
        """Print a model's line; of runs, builds and ways from the file ours and theirs."""
        self._ratios.append([ours / theirs for ours, theirs in kinds])
        cells = [name]
        for seconds, ratio in zip(kinds, self._ratios[-1], strict=True):
            cells += [*map(as_text, seconds), f"{ratio:.2f} ×"]
        print(row(*cells), flush=True)

    def end(self):
        """Print the means, the medians and the largest ratios."""
        ratios = np.array(self._ratios)
        for name, values in {
            "geometric mean": np.exp(np.log(ratios).mean(0)),
            "mean": ratios.mean(0),
            "median": np.median(ratios, 0),
            "largest": ratios.max(0),
        }.items():
            print(row(name, *(cell for ratio in values for cell in ("", "", f"{ratio:.2f} ×"))))
