"""Timing contenders side by side: in turn, in one process, so that a busy machine is busy for all of them."""

import inspect
import statistics
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter

import attrs
import trio

Contender = Callable[[], object] | Callable[[], Awaitable[object]]

OURS = "webnn_py"


@attrs.frozen
class Result:
    """One benchmark: the median seconds of every contender, webnn_py first."""

    name: str
    seconds: Mapping[str, float]
    limit: str = ""

    def ratio(self, peer: str) -> float:
        """How many times as long as ``peer`` webnn_py took."""
        return self.seconds[OURS] / self.seconds[peer]


async def compare(
    name: str, contenders: Mapping[str, Contender], *, runs: int, warm_up: int = 3, limit: str = ""
) -> Result:
    """Run every contender in turn, ``runs`` times, and take medians."""
    samples: dict[str, list[float]] = {contender: [] for contender in contenders}
    for run in range(warm_up + runs):
        for contender, call in contenders.items():
            await trio.lowlevel.checkpoint()
            started = perf_counter()
            result = call()
            if inspect.isawaitable(result):
                await result
            seconds = perf_counter() - started
            if run >= warm_up:
                samples[contender].append(seconds)
    return Result(name, {contender: statistics.median(taken) for contender, taken in samples.items()}, limit)


def as_text(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s"


def table(results: list[Result]) -> str:
    """A Markdown table: a row for each benchmark, medians, and the ratio to each peer."""
    peers = list(dict.fromkeys(peer for result in results for peer in result.seconds if peer != OURS))
    lines = [
        "| " + " | ".join(["", OURS, *peers, "goal"]) + " |",
        "|" + "---|" * (len(peers) + 3),
    ]
    for result in results:
        cells = [result.name, as_text(result.seconds[OURS])]
        for peer in peers:
            taken = result.seconds.get(peer)
            cells.append("–" if taken is None else f"{as_text(taken)} ({result.ratio(peer):.2f} ×)")
        lines.append("| " + " | ".join([*cells, result.limit]) + " |")
    return "\n".join(lines)
