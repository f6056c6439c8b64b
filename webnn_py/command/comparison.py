"""The same run by onnxruntime, on its CPU, without its optimizations: these change what some models compute."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from webnn_py.command.declared import Array
from webnn_py.command.failures import CommandFailedError, needed

NOT_LOGGED: Final = 4
"""Onnxruntime's level for what ends the process: all else is raised, and its log would show a file's names as they
are."""


@attrs.frozen
class OutputDifference:
    """How far an output is from onnxruntime's.

    Attributes:
        name: the output's.
        largest: the largest difference of two finite numbers.
        relative: that, of the largest number that onnxruntime has there.
        place: where it is.
        mismatches: where only one of the two has a number, or they are infinite otherwise.
    """

    name: str
    largest: float
    relative: float
    place: tuple[int, ...]
    mismatches: int

    def is_over(self, tolerance: float) -> bool:
        """Whether it is larger than allowed, relatively."""
        return self.mismatches > 0 or self.relative > tolerance


def onnxruntime_version() -> str:
    """The version that is installed.

    Raises:
        CommandFailedError: none is.
    """
    needed("onnxruntime", "--compare onnxruntime", "onnxruntime")
    return version("onnxruntime")


def run_onnxruntime(path: Path, feeds: Mapping[str, Array], names: tuple[str, ...]) -> dict[str, Array]:
    """What onnxruntime computes.

    Raises:
        CommandFailedError: it cannot run the model.
    """
    runtime = needed("onnxruntime", "--compare onnxruntime", "onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = NOT_LOGGED
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        results = session.run(list(names), dict(feeds))
    except Exception as error:  # it has a dozen classes of its own, in a private module
        raise CommandFailedError(f"onnxruntime cannot run the model: {error}") from error
    return dict(zip(names, map(np.asarray, results), strict=True))


def difference(name: str, ours: Array, theirs: Array) -> OutputDifference:
    """How far two outputs are apart.

    Raises:
        CommandFailedError: their shapes differ.
    """
    if ours.shape != theirs.shape:
        raise CommandFailedError(f"output {name!r} is of shape {list(ours.shape)}; onnxruntime's, {list(theirs.shape)}")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    same = both | (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.zeros(a.shape)
    np.subtract(a, b, out=apart, where=both)
    apart = np.abs(apart)
    if not apart.size:
        return OutputDifference(name, 0.0, 0.0, (), 0)
    place = tuple(int(index) for index in np.unravel_index(int(apart.argmax()), apart.shape))
    largest, scale = float(apart.max()), float(np.abs(b[both]).max(initial=0.0))
    relative = largest / scale if scale else float(largest > 0)
    return OutputDifference(name, largest, relative, place, int(a.size - same.sum()))
