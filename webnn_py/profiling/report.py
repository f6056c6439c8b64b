"""``GraphProfile``: where the time of a graph goes, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, Self, TypeVar

import attrs
import numpy as np

from webnn_py.core.device.backend import KernelNode, KernelTiming
from webnn_py.core.message_text import visible
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.profiling.measuring import DeviceRates, Measurement

T = TypeVar("T")

MOST_ROWS = 40
"""The most kernels with a row of their own."""

GIGA, TERA = 1e9, 1e12

COPY = "copy"
"""The operator name for kernels that compute no operator but only move data."""

WIDTH: Final = 100
"""Columns that a table takes at most."""

CUT: Final = "…"

_FUSABLE = {operator.spec_name for operator in OPERATORS.values() if operator.is_elementwise}


@attrs.frozen
class KernelProfile:
    """The time, bytes and operations of one kernel of a graph.

    Attributes:
        name: the kernel's, for display.
        nodes: the nodes that it computes, in the order in which they run; none for a mere copy.
        seconds: how long it takes, the median of the faster half of the runs.
        share: that, of the whole dispatch.
        bytes_moved: bytes of its operands and results, each counted once and whole.
        flops: arithmetic operations of its nodes.
        copy_share: how near it comes to the device's own rate of copying.
        multiply_share: how near it comes to the device's own rate of multiplying.
    """

    __module__ = "webnn_py"  # where it is public

    name: str
    nodes: tuple[KernelNode, ...]
    seconds: float
    share: float
    bytes_moved: int
    flops: int
    copy_share: float
    multiply_share: float

    @property
    def operator(self) -> str:
        """The operator that it is for: the first that is not element-wise, since those are what is fused."""
        names = [node.operator for node in self.nodes]
        return next((name for name in names if name not in _FUSABLE), names[0] if names else COPY)

    @property
    def bytes_per_second(self) -> float:
        """Bytes moved in a second."""
        return self.bytes_moved / self.seconds if self.seconds else 0.0

    @property
    def flops_per_second(self) -> float:
        """Operations in a second."""
        return self.flops / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        words = (_word(node) for node in self.nodes)
        return visible(" + ".join(word for word, _ in groupby(words)) or self.name)


@attrs.frozen
class OperatorProfile:
    """The sums over the kernels of one operator, with all that is fused into them.

    Attributes:
        operator: its name in the specification; "copy" for kernels that only move what others have computed.
        kernels: how many kernels there are.
        seconds: how long they take.
        share: that, of the whole dispatch.
        bytes_moved: bytes of their operands and results.
        flops: arithmetic operations.
    """

    __module__ = "webnn_py"  # where it is public

    operator: str
    kernels: int
    seconds: float
    share: float
    bytes_moved: int
    flops: int


@attrs.frozen
class GraphProfile:
    """The time of a dispatch, kernel by kernel; its text is a table.

    Attributes:
        device: where it ran.
        clock: the clock of the kernels' times, "gpu" or "host".
        repeat: how many runs there were; medians are of the faster half.
        seconds: how long a dispatch with timings takes by the host's clock, from the beginning to the end.
        plain_seconds: how long one without timings takes, by the same clock.
        row_seconds: how long each takes, without timings, of some that follow one another without a wait.
        device_seconds: how long one with timings takes by the kernels' clock: from the begin of the first kernel to the
            end of the last.
        kernels: the kernels, in the order in which they run.
        rates: how fast the device copies and multiplies.
    """

    __module__ = "webnn_py"  # where it is public

    device: str
    clock: str
    repeat: int
    seconds: float
    plain_seconds: float
    row_seconds: float
    device_seconds: float
    kernels: tuple[KernelProfile, ...]
    rates: DeviceRates

    @classmethod
    def from_measurement(cls, device: str, measured: Measurement) -> Self:
        """Sum up what was measured: the faster half of the runs, since others have disturbed the rest."""
        runs = _faster_half(measured.runs, lambda run: run.seconds)
        plain, row = (
            _median(_faster_half(times, lambda time: time)) for times in (measured.plain_seconds, measured.row_seconds)
        )
        durations = zip(*([timing.duration_ns for timing in run.kernels] for run in runs), strict=True)
        longer = measured.rates.timing_seconds
        medians = [_median(of_runs) / 1e9 for of_runs in durations]
        seconds = [max(median - longer, median / 10) for median in medians]  # less the mean cost of timing
        whole = max(plain, sum(seconds))
        first = runs[0].kernels
        kernels = tuple(_kernel(timing, own, whole, measured.rates) for timing, own in zip(first, seconds, strict=True))
        clock = first[0].clock if first else "host"
        timed, on_device = (_median([getattr(run, name) for run in runs]) for name in ("seconds", "device_seconds"))
        return cls(device, clock, len(measured.runs), timed, plain, row, on_device, kernels, measured.rates)

    @property
    def kernel_seconds(self) -> float:
        """The sum of the kernels' times."""
        return sum(kernel.seconds for kernel in self.kernels)

    @property
    def waiting_seconds(self) -> float:
        """The time of a dispatch without timings that no kernel takes: launching, and the way there and back."""
        return max(self.plain_seconds - self.kernel_seconds, 0.0)

    @property
    def operators(self) -> tuple[OperatorProfile, ...]:
        """The sums for each operator, the longest first."""
        groups: dict[str, list[KernelProfile]] = {}
        for kernel in self.kernels:
            groups.setdefault(kernel.operator, []).append(kernel)
        sums = (_operator(name, kernels) for name, kernels in groups.items())
        return tuple(sorted(sums, key=lambda item: -item.seconds))

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain dictionaries, lists, texts and numbers, for JSON."""
        document: dict[str, Any] = attrs.asdict(self)
        for kernel, plain in zip(self.kernels, document["kernels"], strict=True):
            plain |= {
                "operator": kernel.operator,
                "bytes_per_second": kernel.bytes_per_second,
                "flops_per_second": kernel.flops_per_second,
            }
        return document | {
            "kernel_seconds": self.kernel_seconds,
            "waiting_seconds": self.waiting_seconds,
            "operators": [attrs.asdict(item) for item in self.operators],
        }

    def __str__(self) -> str:
        longer = self.rates.timing_seconds
        copied = _rate(self.rates.copied_bytes_per_second, GIGA)
        name, unit = self._unit
        multiplied = _rate(self.rates.multiplied_flops_per_second, unit)
        timed, plain, row = map(_duration, (self.seconds, self.plain_seconds, self.row_seconds))
        kernels, on_device = _duration(self.kernel_seconds), _duration(self.device_seconds)
        agreement = _share(self.kernel_seconds / self.row_seconds)
        head = [
            self.device,
            f"a dispatch takes {plain}, {row} in a row, {timed} with timings; the faster half of {self.repeat} runs",
            f"kernels take {kernels} of {on_device} by {self._clock}, {agreement} of a dispatch in a row",
            *([f"timing makes a kernel {_duration(longer)} longer, which is subtracted"] if longer else []),
            f"the device copies {copied} GB/s and multiplies {multiplied} {name} in {self.rates.data_type}",
            "",
        ]
        headings = ("time", "share", "moved", "GB/s", "%copy", "work", name, "%mult", "kernel")
        return "\n".join([*head, *_columns(headings, self._rows(unit)), "", *_columns(_SUMS, self._sums())])

    @property
    def _clock(self) -> str:
        return "the GPU's clock" if self.clock == "gpu" else "the host's clock"

    @property
    def _unit(self) -> tuple[str, float]:
        """The unit of operations in a second that suits the device, and its factor."""
        return ("TF/s", TERA) if self.rates.multiplied_flops_per_second >= TERA else ("GF/s", GIGA)

    def _rows(self, unit: float) -> list[Sequence[str]]:
        kernels = sorted(self.kernels, key=lambda kernel: -kernel.seconds)
        rows = [_row(kernel, unit) for kernel in kernels[:MOST_ROWS]]
        rest = kernels[MOST_ROWS:]
        others = [(sum(kernel.seconds for kernel in rest), f"{len(rest)} more kernels")] if rest else []
        whole = self.kernel_seconds + self.waiting_seconds
        for seconds, name in [*others, (self.waiting_seconds, "waiting and launch")]:
            rows.append([_duration(seconds), _share(seconds / whole), *[""] * 6, name])
        return rows

    def _sums(self) -> list[Sequence[str]]:
        return [
            [
                _duration(item.seconds),
                _share(item.share),
                _count(item.bytes_moved, "B"),
                _count(item.flops, "F"),
                str(item.kernels),
                item.operator,
            ]
            for item in self.operators
        ]


_SUMS = ("time", "share", "moved", "work", "kernels", "operator, with what is fused into it")


def _faster_half(items: Sequence[T], seconds: Callable[[T], float]) -> Sequence[T]:
    return sorted(items, key=seconds)[: (len(items) + 1) // 2]


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))


def _word(node: KernelNode) -> str:
    """Return a node by its operator and label, or, where a device has drawn it in another's place, by that."""
    if node.label.startswith("in "):
        return node.label.removeprefix("in ")
    return f"{node.operator} [{node.label}]" if node.label else node.operator


def _row(kernel: KernelProfile, unit: float) -> Sequence[str]:
    return [
        _duration(kernel.seconds),
        _share(kernel.share),
        _count(kernel.bytes_moved, "B"),
        _rate(kernel.bytes_per_second, GIGA),
        _share(kernel.copy_share),
        _count(kernel.flops, "F"),
        _rate(kernel.flops_per_second, unit),
        _share(kernel.multiply_share) if kernel.flops else "",
        str(kernel),
    ]


def _kernel(timing: KernelTiming, seconds: float, whole: float, rates: DeviceRates) -> KernelProfile:
    moving, computing = (amount / seconds if seconds else 0.0 for amount in (timing.bytes_moved, timing.flops))
    return KernelProfile(
        timing.name,
        timing.nodes,
        seconds,
        seconds / whole,
        timing.bytes_moved,
        timing.flops,
        moving / rates.copied_bytes_per_second,
        computing / rates.multiplied_flops_per_second,
    )


def _operator(name: str, kernels: Sequence[KernelProfile]) -> OperatorProfile:
    return OperatorProfile(
        name,
        len(kernels),
        sum(kernel.seconds for kernel in kernels),
        sum(kernel.share for kernel in kernels),
        sum(kernel.bytes_moved for kernel in kernels),
        sum(kernel.flops for kernel in kernels),
    )


def _duration(seconds: float) -> str:
    """Return a time in three digits."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{_digits(seconds * factor)} {unit}"
    return f"{_digits(seconds * 1e6)} µs"


def _share(part: float) -> str:
    """Return a part of something in per cent."""
    return f"{100 * part:.1f}%"


def _rate(per_second: float, unit: float) -> str:
    """Return a rate in a unit, in three digits or three places; nothing for none."""
    value = per_second / unit
    if not value:
        return ""
    return f"{value:.3f}" if value < 1 else _digits(value)


def _count(amount: float, unit: str) -> str:
    """Return an amount in three digits."""
    for prefix in ("", "k", "M", "G"):
        if amount < 1000:
            return f"{_digits(amount)} {prefix}{unit}" if amount else ""
        amount /= 1000
    return f"{_digits(amount)} T{unit}"


def _digits(value: float) -> str:
    """Return a number in three digits, or more if it has more before the point."""
    places = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{places}f}"


def _columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table: numbers to the right, and the last column cut off where the line ends."""
    table = [headings, *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for row in table:
        *numbers, text = row
        line = "  ".join([*(cell.rjust(width) for cell, width in zip(numbers, widths, strict=False)), text])
        yield line if len(line) <= WIDTH else f"{line[: WIDTH - len(CUT)]}{CUT}"
