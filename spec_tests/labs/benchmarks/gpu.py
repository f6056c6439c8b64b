"""Operators and models on a GPU, compared with onnxruntime-webgpu and torch.

``python -m spec_tests.labs.benchmarks.gpu``
"""

import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

import attrs
import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks import gpu_contenders, gpu_models
from spec_tests.labs.benchmarks.gpu_cases import CASES, ONNXRUNTIME, TORCH
from spec_tests.labs.benchmarks.gpu_small import SMALL
from spec_tests.labs.benchmarks.measure import OURS, WORDS, as_text, head, is_wanted, parser
from spec_tests.labs.benchmarks.measure import row as markdown
from webnn_py.devices.wgpu import adapters

CONTENDERS = (OURS, ONNXRUNTIME, TORCH)


@attrs.frozen
class Row:
    """A line of the table.

    Attributes:
        name: what was timed.
        seconds: by contender.
        amount: what was done, in ``unit``; the table then has rates instead of times.
        unit: of the rate.
    """

    name: str
    seconds: Mapping[str, float | None]
    amount: float = 0
    unit: str = ""

    def cells(self) -> list[str]:
        """Return the cells that the table shows."""
        shown = [self._shown(self.seconds.get(contender)) for contender in CONTENDERS]
        return [self.name, *shown]

    def _shown(self, seconds: float | None) -> str:
        if seconds is None:
            return "–"
        return f"{self.amount / seconds:,.1f} {self.unit}" if self.unit else as_text(seconds)


def table(rows: Sequence[Row]) -> str:
    """Return a Markdown table."""
    return "\n".join([head("", *CONTENDERS), *(markdown(*row.cells()) for row in rows)])


async def attempt(name: str, time: Callable, *arguments: object) -> object | None:
    """Return what a peer takes, or None where it cannot do it; the reason goes to standard error."""
    try:
        taken = time(*arguments)
        return await taken if inspect.isawaitable(taken) else taken
    except Exception as error:  # noqa: BLE001 - a peer may fail in any way
        print(f"{time.__module__} {name}: {type(error).__name__}: {error}", file=sys.stderr)
        return None


async def operator_rows(ml: webnn_py.ML, words: Sequence[str]) -> AsyncIterator[Row]:
    for case in CASES:
        if is_wanted(case.name, words):
            seconds = {
                OURS: await gpu_contenders.time_ours(ml, case),
                ONNXRUNTIME: await attempt(case.name, gpu_contenders.time_onnxruntime, case),
                TORCH: await attempt(case.name, gpu_contenders.time_torch, case),
            }
            yield Row(case.name, seconds, case.amount, case.unit)


async def model_rows(ml: webnn_py.ML, words: Sequence[str]) -> AsyncIterator[Row]:
    for name, make in gpu_models.MODELS.items():
        if is_wanted(name, words):
            model, shape = make()
            data_type = "float16" if "float16" in name else "float32"
            data = np.random.default_rng(3).standard_normal(shape, np.float32).astype(data_type)
            trip, in_a_row, result = await gpu_models.time_ours(ml, model, data)
            seconds = {OURS: trip}
            for peer, time in {ONNXRUNTIME: gpu_models.time_onnxruntime, TORCH: gpu_models.time_torch}.items():
                taken = await attempt(name, time, model, data)
                seconds[peer] = taken and taken[0]
                if taken is not None:
                    gpu_models.check_agreement(result, taken[1])
            yield Row(name, seconds)
            yield Row(f"{name}, in a row", {OURS: in_a_row})


async def small_rows(ml: webnn_py.ML, words: Sequence[str]) -> AsyncIterator[Row]:
    for time, names in SMALL.items():
        if any(is_wanted(name, words) for name in names):
            for name, seconds in (await time(ml)).items():
                yield Row(name, {OURS: seconds})


async def measure(words: Sequence[str]) -> list[Row]:
    rows = []
    async with webnn_py.open_ml() as ml:
        for measured in (operator_rows, small_rows, model_rows):
            async for row in measured(ml, words):
                print(" | ".join(row.cells()), flush=True)
                rows.append(row)
    return rows


def versions() -> str:
    """Return what is measured, in a line."""
    parts = []
    for name in ("wgpu", "onnxruntime-webgpu", "torch", "numpy"):
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    adapter = adapters.choose("default", software=True)
    return f"{adapter.summary if adapter else 'no adapter'}; {', '.join(parts)}"


def main() -> None:
    arguments = parser("gpu", __doc__)
    arguments.add_argument("words", **WORDS)
    arguments.add_argument("--json", type=Path, help="also write seconds here")
    options = arguments.parse_args()
    print(versions(), flush=True)
    rows = trio.run(measure, options.words)
    print(f"\n{table(rows)}\n")
    if options.json:
        measured = {row.name: row.seconds for row in rows}
        options.json.write_text(json.dumps({"where": versions(), "rows": measured}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
