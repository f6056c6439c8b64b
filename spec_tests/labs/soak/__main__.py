"""``python -m spec_tests.labs.soak --minutes 60``: random programs for a long time, in one process.

An episode opens the API, two contexts on each device, and lets tasks use them side by side: they compute, leave buffers
and graphs to the garbage, are cancelled, call badly. Some episodes lose or destroy a context in the middle, others are
interrupted (SIGINT) at any moment. After each the books must be right: no buffer, no byte, nothing queued, ``lost``
fulfilled, no thread more. At the end the memory must not have grown. Status 1, with what was wrong, otherwise.
"""

import argparse
import ctypes
import faulthandler
import gc
import logging
import os
import platform
import signal
import sys
import threading
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import trio
import wgpu

import webnn_py
from spec_tests.labs.soak import actions
from spec_tests.labs.soak.actions import ABORTED, Counts
from spec_tests.support.backends import BACKENDS
from webnn_py import MLContext

CONTEXTS = 2
TASKS = 3
STEPS = 4
KINDS = ("quiet", "quiet", "ended", "interrupted")
LONGEST_EPISODE = 300
PIPELINES = 64
MOST_GROWN = 1.1
FEW = 10
"""In the last quarter there may be so many times what there was in the second, and some more."""
REFUSED = 6
"""The WebGPU library keeps a label of each request that a lost device refuses: as many for each loss."""
M_ARENA_MAX = -8
ARENAS = 2
"""glibc gives each thread a heap of its own, up to eight a core, and threads come and go: on 16 cores these heaps go on
filling for long, which would hide what is kept."""


@attrs.frozen
class Sample:
    """Resources of the process after an episode: MiB, Python's and the WebGPU library's objects, threads."""

    resident: float
    objects: int
    native: int
    threads: int

    @classmethod
    def now(cls) -> "Sample":
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        resident = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        counts = wgpu.diagnostics.wgpu_native_counts.get_dict()
        native = sum(kind["count"] for name, kind in counts.items() if name != "total")
        return cls(resident, len(gc.get_objects()) + gc.get_freeze_count(), native, threading.active_count())


async def use(context: MLContext, seed: list[int], counts: Counts, *, may_end: bool) -> None:
    """Do some of what is usual, one after the other."""
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        action = actions.USUAL[rng.integers(len(actions.USUAL))]
        try:
            await action(context, rng, counts)
        except ABORTED as error:
            if not may_end:
                raise
            counts.note(f"aborted by {type(error).__name__}")
            return


async def episode(
    kind: str,
    seed: list[int],
    counts: Counts,
    contexts: list[MLContext],
    *,
    backends: list[str] = BACKENDS,
    tasks: int = TASKS,
) -> None:
    """Open the API and use every device by some tasks; ``contexts`` are those that it has made."""
    rng = np.random.default_rng(seed)
    async with webnn_py.open_ml() as ml:
        for name in backends * CONTEXTS:
            options = {"max_cached_pipelines": PIPELINES} if name == "wgpu" else {}
            contexts.append(await ml.create_context(backend=name, **options))
        async with trio.open_nursery() as nursery:
            for number, context in enumerate(contexts * tasks):
                nursery.start_soon(partial(use, context, [*seed, number], counts, may_end=kind == "ended"))
            if kind == "ended":
                for context in contexts:
                    end = actions.ENDS[rng.integers(len(actions.ENDS))]
                    nursery.start_soon(end, context, np.random.default_rng([*seed, len(contexts)]), counts)
    for context in contexts:
        await context.drain()


def interrupted(seed: list[int], counts: Counts, contexts: list[MLContext], backends: list[str]) -> None:
    """Run an episode that is interrupted at any moment, and expect exactly that, in any task: in trio's groups."""
    delay = np.random.default_rng(seed).exponential(0.3)
    timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
    try:
        try:
            timer.start()
            trio.run(partial(episode, "interrupted", seed, counts, contexts, backends=backends))
            counts.note("over before the interrupt")
            timer.join()
            time.sleep(0.1)  # until the signal has come
        except* KeyboardInterrupt:
            counts.note("interrupted")
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is a fault
        counts.fault("an interrupt gave " + "".join(traceback.format_exception(error)))
    timer.join()


def check_books(kind: str, contexts: list[MLContext], counts: Counts) -> None:
    """Look whether anything is left of contexts that have ended."""
    for context in contexts:
        found = context.statistics()
        left = (found.live_buffers, found.live_bytes, found.queued_operations, found.queued_bytes)
        if any(left):
            counts.fault(f"{context.backend.name}, {kind}: (buffers, bytes, operations, bytes queued) left: {left}")
        if context.lost.state != "fulfilled":
            counts.fault(f"{context.backend.name}, {kind}: lost is {context.lost.state}")


def run(minutes: float, seed: int, kinds: list[str], backends: list[str], counts: Counts) -> list[Sample]:
    """Episodes for so long on these devices; what the process holds after each."""
    samples = []
    end = time.monotonic() + 60 * minutes
    told = time.monotonic()
    while time.monotonic() < end and not counts.faults:
        number = len(samples)
        kind = kinds[np.random.default_rng([seed, number]).integers(len(kinds))]
        contexts: list[MLContext] = []
        faulthandler.dump_traceback_later(LONGEST_EPISODE, exit=True)
        if kind == "interrupted":
            interrupted([seed, number], counts, contexts, backends)
        else:
            trio.run(partial(episode, kind, [seed, number], counts, contexts, backends=backends))
        faulthandler.cancel_dump_traceback_later()
        check_books(kind, contexts, counts)
        counts.note(f"{kind} episodes")
        del contexts
        samples.append(Sample.now())
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"{number} episodes, {samples[-1]}", file=sys.stderr, flush=True)
    return samples


def check_growth(samples: list[Sample], counts: Counts) -> None:
    """Compare the second quarter, when all is warm, with the last."""
    quarter = len(samples) // 4
    if not quarter:
        counts.fault(f"{len(samples)} episodes are too few to tell anything of memory")
        return
    for field in attrs.fields(Sample):
        values = [getattr(sample, field.name) for sample in samples]
        before, after = (float(np.median(part)) for part in (values[quarter : 2 * quarter], values[-quarter:]))
        print(f"{field.name}: {before:.0f} in the second quarter, {after:.0f} in the last")
        refused = REFUSED * counts.done.get("lost in the middle", 0) if field.name == "native" else 0
        if after > MOST_GROWN * before + FEW + refused:
            counts.fault(f"{field.name} has grown from {before:.0f} to {after:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", nargs="*", default=[], choices=sorted(set(KINDS)), help="kinds of episodes")
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS, help="devices; all by default")
    options = parser.parse_args()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)
    warnings.simplefilter("ignore", ResourceWarning)  # it leaves things to the garbage
    logging.getLogger("wgpu").setLevel(logging.CRITICAL)  # it loses devices
    counts = Counts()
    kinds = [kind for kind in KINDS if kind not in options.without]
    samples = run(options.minutes, options.seed, kinds, options.backends, counts)
    print(f"{len(samples)} episodes in {options.minutes:g} minutes, seed {options.seed}")
    for what, count in sorted(counts.done.items()):
        print(f"{what}: {count}")
    check_growth(samples, counts)
    for fault in counts.faults:
        print(f"FAULT: {fault}")
    sys.exit(bool(counts.faults))


if __name__ == "__main__":
    main()
