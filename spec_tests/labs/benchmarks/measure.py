"""Timing contenders in turn, in one process, so that a busy machine is busy for all of them; and Markdown tables."""

import argparse
import inspect
import statistics
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter

import attrs
import trio

Contender = Callable[[], object] | Callable[[], Awaitable[object]]

OURS = "webnn_py"
WORDS = {"nargs": "*", "metavar": "WORD", "help": "only what has one of these in its name"}
"""Of the argument that chooses what is measured."""


@attrs.frozen
class Result:
    """One benchmark: the median seconds of every contender, webnn_py first."""

    name: str
    seconds: Mapping[str, float]
    limit: str = ""

    def ratio(self, peer: str) -> float:
        """Return how many times as long as ``peer`` webnn_py took."""
        return self.seconds[OURS] / self.seconds[peer]


def parser(module: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of the command line of one of these modules."""
    return argparse.ArgumentParser(prog=f"python -m spec_tests.labs.benchmarks.{module}".rstrip("."), description=doc)


def is_wanted(name: str, words: Iterable[str]) -> bool:
    """Return whether a name has one of the words, or there are none."""
    words = list(words)
    return not words or any(word in name for word in words)


async def seconds_of(call: Contender, clock: Callable[[], float] = perf_counter) -> float:
    """Call once, and wait for what is awaitable."""
    began = clock()
    result = call()
    if inspect.isawaitable(result):
        await result
    return clock() - began


async def compare(
    name: str, contenders: Mapping[str, Contender], *, runs: int, warm_up: int = 3, limit: str = ""
) -> Result:
    """Run every contender in turn, ``runs`` times, and take medians."""
    samples: dict[str, list[float]] = {contender: [] for contender in contenders}
    for run in range(warm_up + runs):
        for contender, call in contenders.items():
            await trio.lowlevel.checkpoint()
            seconds = await seconds_of(call)
            if run >= warm_up:
                samples[contender].append(seconds)
    return Result(name, {contender: statistics.median(taken) for contender, taken in samples.items()}, limit)


def as_text(seconds: float) -> str:
    """Return a duration in the unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s"


def row(*cells: object) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def head(*cells: str) -> str:
    """Return the head of a Markdown table."""
    return f"{row(*cells)}\n|{'---|' * len(cells)}"


def table(results: list[Result]) -> str:
    """Return a Markdown table: a row for each benchmark, medians, and the ratio to each peer."""
    peers = list(dict.fromkeys(peer for result in results for peer in result.seconds if peer != OURS))
    lines = [head("", OURS, *peers, "goal")]
    for result in results:
        cells = [result.name, as_text(result.seconds[OURS])]
        for peer in peers:
            taken = result.seconds.get(peer)
            cells.append("–" if taken is None else f"{as_text(taken)} ({result.ratio(peer):.2f} ×)")
        lines.append(row(*cells, result.limit))
    return "\n".join(lines)
