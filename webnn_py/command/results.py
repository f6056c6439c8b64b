"""Results of a run: summaries of its outputs, the top classes, and times."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.command.declared import Array
from webnn_py.command.failures import BadInputError
from webnn_py.command.loading import opened

PERCENTILES: Final = (50, 90, 99)

TOP: Final = 5
"""The most classes of an output that are told."""


def mean_of(array: Array) -> float | None:
    """Return the mean of the finite numbers of an array; None if there are none."""
    finite = array[np.isfinite(array)]
    return float(finite.mean(dtype=np.float64)) if finite.size else None


@attrs.frozen
class ScoredClass:
    """A class, and its score."""

    index: int
    label: str
    score: float


def read_labels(path: Path) -> list[str]:
    """Return the names of classes, one a line.

    Raises:
        BadInputError: the file cannot be read.
    """
    with opened(path, "text in UTF-8") as file:
        return file.read().decode("utf-8-sig").splitlines()


def top_classes(outputs: Mapping[str, Array], labels: Sequence[str]) -> dict[str, list[list[ScoredClass]]]:
    """Return the highest scores of each output that has one for each label, as many lists as it has rows.

    Raises:
        BadInputError: no output has.
    """
    found = {}
    for name, array in outputs.items():
        if array.ndim and array.shape[-1] == len(labels) and array.size:
            rows = array.reshape(-1, len(labels))
            found[name] = [_highest(row, labels) for row in rows]
    if not found:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in outputs.items())
        raise BadInputError(f"--labels has {len(labels)} lines; no output has so many classes: {shapes}")
    return found


def _highest(row: Array, labels: Sequence[str]) -> list[ScoredClass]:
    numbers = np.where(np.isnan(row), -np.inf, row.astype(np.float64))
    order = np.argsort(-numbers, kind="stable")[:TOP]
    return [ScoredClass(int(index), labels[index], float(row[index])) for index in order]


@attrs.frozen
class Times:
    """Durations of the steps, in seconds.

    Attributes:
        load: reading the file.
        import_: converting the model's nodes.
        build: compiling them for the device.
        first_run: the first run, which also warms up.
        runs: those after it.
    """

    load: float
    import_: float
    build: float
    first_run: float
    runs: tuple[float, ...]

    def percentiles(self) -> dict[str, float]:
        """Return percentiles of the runs after the first, in seconds."""
        return {f"p{percent}": float(np.percentile(self.runs, percent)) for percent in PERCENTILES}

    def as_milliseconds(self) -> dict[str, Any]:
        """Return the durations in milliseconds, for JSON."""
        return {
            "load_ms": self.load * 1e3,
            "import_ms": self.import_ * 1e3,
            "build_ms": self.build * 1e3,
            "first_run_ms": self.first_run * 1e3,
            "runs": len(self.runs),
            "run_ms": {name: seconds * 1e3 for name, seconds in self.percentiles().items()},
        }
