"""A busy program, interrupted at a random moment again and again: ``python -m spec_tests.support.interrupted``.

A line of JSON is printed for each round: what ended it, and what was left. An interrupt of a round comes while the
program is at work, and then others, while it is being left.
"""

import argparse
import json
import os
import random
import signal
import threading
import time
import traceback

import attrs
import numpy as np
import trio

from spec_tests.support.drawing import build_add_one
from webnn_py import open_ml
from webnn_py.core.device import registry
from webnn_py.devices.wgpu import adapters

SIZES = (2, 1000, 600_000)
"""Elements of the buffers: the last are copied in a worker thread."""

TRIOS = "Trio thread"

BUSY_SECONDS = {"numpy": 0.03, "wgpu": 0.2, "onnxruntime": 0.2}
"""About how long a program takes from its start to the end of the first turn."""


@attrs.define
class Round:
    """The state that a round leaves behind, for the check after it."""

    contexts: list = attrs.Factory(list)
    scripts: list = attrs.Factory(list)
    is_inside: bool = False
    may_be_interrupted: bool = False
    outcome: str = "returned"

    def left(self):
        """Return what is left over, in words; an empty list after a good round."""
        found = [] if self.outcome == "KeyboardInterrupt" else [f"it ended by {self.outcome}"]
        for context in self.contexts:
            statistics = context.statistics()
            if (statistics.live_buffers, statistics.live_bytes, statistics.queued_operations) != (0, 0, 0):
                found.append(f"{context} has {statistics}")
            if context.lost.state != "fulfilled":
                found.append(f"lost of {context} is {context.lost.state}")
            if not context.device_timeline.ended:
                found.append(f"{context.device_timeline} has not ended")
        found += [f"{script} has not ended" for script in self.scripts if not script.ended]
        return found


class Interrupter:
    """A thread that interrupts the process while a round is at work."""

    def __init__(self, seed, within):
        self._random = random.Random(seed)  # noqa: S311 - a test's moments
        self._within = within
        self._threads = []  # kept: when one goes, a callback of a weak reference is called, where an interrupt is lost

    def start(self, this_round):
        """Interrupt the round after up to this many seconds; in one of three rounds, interrupt it three times."""
        delays = [self._random.random() * self._within]
        if self._random.random() < 1 / 3:
            delays += [self._random.random() * 0.003 for _ in range(2)]
        self._threads.append(threading.Thread(target=self._interrupt, args=(this_round, delays), daemon=True))
        this_round.may_be_interrupted = True
        self._threads[-1].start()

    def _interrupt(self, this_round, delays):
        for delay in delays:
            time.sleep(delay)
            if not this_round.is_inside:
                break
            os.kill(os.getpid(), signal.SIGINT)
        this_round.may_be_interrupted = False


async def work_until_interrupted(ml, this_round, options):
    """Create, write, dispatch, read, drop and destroy, on two contexts, for ever."""
    while True:
        contexts = [await ml.create_context(**options) for _ in range(2)]
        this_round.contexts += contexts
        for context in contexts:
            for size in SIZES:
                await use(context, size)
        contexts[0].destroy()


async def use(context, size):
    """All that can be asked of a context."""
    graph = await build_add_one(context, [size])
    made = [context.create_buffer(data_type="float32", shape=[size], readable=True, writable=True) for _ in range(3)]
    x, y, dropped = [await promise for promise in made]
    for value in range(5):
        context.write_buffer(x, np.full(size, value, np.float32))
        context.dispatch(graph, {"x": x}, {"y": y})
        context.dispatch(graph, {"x": y}, {"y": dropped})
        out = np.empty(size, np.float32)
        await context.read_buffer(dropped, out=out)
        assert out[-1] == value + 2
    unread = [context.read_buffer(y) for _ in range(3)]
    await context.drain()
    y.destroy()
    graph.destroy()
    context.create_constant_buffer(bytes(4), data_type="int8", shape=[4])
    del dropped, unread


def run_round(this_round, interrupter, options):
    """Run the program until an interrupt ends it."""

    async def program():
        this_round.is_inside = True
        try:
            interrupter.start(this_round)
            async with open_ml() as ml:
                this_round.scripts.append(ml.script_timeline)
                await work_until_interrupted(ml, this_round, options)
        finally:
            this_round.is_inside = False

    try:
        trio.run(program)
    except BaseException as error:  # noqa: BLE001 - that another one ends it is what is looked for
        this_round.outcome = "KeyboardInterrupt" if isinstance(error, KeyboardInterrupt) else _in_full(error)


def _in_full(error):
    return "".join(traceback.format_exception(error))


def threads_left():
    """The threads that are there after a while, other than those that trio keeps for the next run."""
    until = time.monotonic() + 15
    while time.monotonic() < until:
        threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        busy = [name for name in threads if not name.startswith(TRIOS)]
        if not busy:
            break
        time.sleep(0.1)
    return busy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend")
    parser.add_argument("rounds", type=int)
    parser.add_argument("seed", type=int)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    record = next(record for record in registry.built_in() if record.name == arguments.backend)
    load = adapters.adapters if arguments.backend == "wgpu" else record.adapters  # not the engine that is not used
    load()  # what is loaded on the first use is loaded before the first interrupt
    interrupter = Interrupter(arguments.seed, BUSY_SECONDS[arguments.backend])
    for number in range(arguments.rounds):
        this_round = Round()
        try:
            run_round(this_round, interrupter, {"backend": arguments.backend})
            while this_round.may_be_interrupted:  # one that is sent while the round ends comes now
                time.sleep(0.004)
        except KeyboardInterrupt:
            pass
        print(json.dumps({"round": number, "left": this_round.left()}), flush=True)
    print(json.dumps({"threads": threads_left()}), flush=True)


if __name__ == "__main__":
    main()
