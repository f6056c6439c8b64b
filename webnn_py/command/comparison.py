"""The same run by onnxruntime, on its CPU, without its optimizations: these change what some models compute."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.command.declared import Array
from webnn_py.command.failures import CommandFailedError, needed
from webnn_py.core.message_text import kind

NOT_LOGGED: Final = 4
"""Onnxruntime's level for what ends the process: all else is raised, and its log would show a file's names as they
are."""


@attrs.frozen
class OutputDifference:
    """The deviation of an output from onnxruntime's.

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
        """Return whether the relative deviation is larger than allowed."""
        return self.mismatches > 0 or self.relative > tolerance


def onnxruntime_version() -> str:
    """Return the version that is installed.

    Raises:
        CommandFailedError: none is.
    """
    needed("onnxruntime", "--compare onnxruntime", "pip install onnxruntime")
    return version("onnxruntime")


def run_onnxruntime(path: Path, feeds: Mapping[str, Array], names: tuple[str, ...]) -> dict[str, Array]:
    """Run a model by onnxruntime.

    Args:
        path: the model's.
        feeds: what its inputs are given.
        names: of the outputs that are wanted.

    Returns:
        The outputs by name.

    Raises:
        CommandFailedError: it cannot run the model, or an output cannot be an array.
    """
    runtime = needed("onnxruntime", "--compare onnxruntime", "pip install onnxruntime")
    try:
        results = opened_session(runtime, path).run(list(names), dict(feeds))
    except Exception as error:  # it has a dozen classes of its own, in a private module
        raise CommandFailedError(f"onnxruntime cannot run the model: {error}") from error
    return {name: _as_array(name, result) for name, result in zip(names, results, strict=True)}


def opened_session(runtime: ModuleType, path: Path) -> Any:
    """Return onnxruntime's session of a model; whatever it raises is of a class of its own, in a private module."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = NOT_LOGGED
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _as_array(name: str, result: object) -> Array:
    """Return an output that is a tensor.

    Raises:
        CommandFailedError: it is none, as the maps of ZipMap.
    """
    if isinstance(result, np.ndarray):
        return result
    raise CommandFailedError(
        f"output {name!r} cannot be compared: onnxruntime's is a {kind(result)}, and no tensor; "
        "leave it out by --output"
    )


def difference(name: str, ours: Array, theirs: Array) -> OutputDifference:
    """Return the deviation between two outputs.

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
