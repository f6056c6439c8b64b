"""The same run by onnxruntime, on its CPU, without its optimizations: these change what some models compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from webnn_py.command.declared import Array
from webnn_py.command.failures import CommandFailedError, needed
from webnn_py.core.message_text import kind

if TYPE_CHECKING:
    from onnx import ModelProto

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


def run_onnxruntime(
    path: Path, feeds: Mapping[str, Array], names: tuple[str, ...], maps: Mapping[str, Sequence[int | str]]
) -> dict[str, Array]:
    """Run a model by onnxruntime.

    Args:
        path: the model's.
        feeds: what its inputs are given.
        names: of the outputs that are wanted.
        maps: the keys of those outputs that are maps, by :func:`keys_of_maps`.

    Returns:
        The outputs by name. Of maps, one for each row, the arrays have a column for each key, in the keys' order.

    Raises:
        CommandFailedError: it cannot run the model, or an output cannot be an array.
    """
    runtime = needed("onnxruntime", "--compare onnxruntime", "pip install onnxruntime")
    try:
        results = opened_session(runtime, path).run(list(names), dict(feeds))
    except Exception as error:  # it has a dozen classes of its own, in a private module
        raise CommandFailedError(f"onnxruntime cannot run the model: {error}") from error
    return {name: _as_array(name, result, maps.get(name)) for name, result in zip(names, results, strict=True)}


def opened_session(runtime: ModuleType, path: Path) -> Any:
    """Return onnxruntime's session of a model; whatever it raises is of a class of its own, in a private module."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = NOT_LOGGED
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def keys_of_maps(model: ModelProto) -> dict[str, Sequence[int | str]]:
    """Return the keys of the outputs of a model that are maps, as ZipMap makes them, in the order of its attribute.

    Here such an output is the tensor of ZipMap's input, which has a column for each key.
    """
    found: dict[str, Sequence[int | str]] = {}
    for node in model.graph.node:
        if node.op_type != "ZipMap":
            continue
        keys = {attribute.name: attribute for attribute in node.attribute}
        if "classlabels_strings" in keys:
            found[node.output[0]] = [key.decode("utf-8", "replace") for key in keys["classlabels_strings"].strings]
        elif "classlabels_int64s" in keys:
            found[node.output[0]] = list(keys["classlabels_int64s"].ints)
    return found


def _as_array(name: str, result: object, keys: Sequence[int | str] | None) -> Array:
    """Return an output as an array.

    Raises:
        CommandFailedError: it is a sequence, or its maps have other keys than are known.
    """
    if isinstance(result, np.ndarray):
        return result
    if isinstance(result, list) and keys is not None and all(isinstance(row, dict) for row in result):
        if any(row.keys() != set(keys) for row in result):
            raise CommandFailedError(
                f"output {name!r} cannot be compared: onnxruntime's maps have other keys than {keys}"
            )
        return np.array([[row[key] for key in keys] for row in result]).reshape(len(result), len(keys))
    raise CommandFailedError(
        f"output {name!r} cannot be compared: onnxruntime's is a {kind(result)}, and no tensor; "
        "leave it out by --output"
    )


def difference(name: str, ours: Array, theirs: Array) -> OutputDifference:
    """Return the deviation between two outputs.

    Raises:
        CommandFailedError: their shapes differ.
    """
    if ours.size == theirs.size and ours.ndim == 1 and theirs.shape[:-1] == (1,):
        theirs = theirs.reshape(ours.shape)  # a map of one row
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
