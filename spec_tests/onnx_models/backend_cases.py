"""The tests of ``onnx.backend.test``, run through the importer: each a model with inputs and outputs.

A value that a model computes shapes with must be known while building, and these models have every value as an input.
So a test is tried in up to four *ways*, and the first one that is not refused counts:

* "run": all inputs are inputs of the graph;
* "rest known": the first one is, the others are known;
* "known": all are known, and the outputs are constants that folding computed;
* "narrowed": the first one is, the others are known, and float64 is float32.
"""

import warnings
from functools import cache
from pathlib import Path

import attrs
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from spec_tests.support.computing import compute_graph
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import InvalidModelError, OnnxModel

OFFLINE = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""The kinds of tests that are in the package; the others download models."""

ROUNDING = 1e-6
"""The tolerance near 0 of sums in float32, relative to the greatest of them."""

WAYS = ("run", "rest known", "known", "narrowed")

NARROWED = 1e-5
"""The least relative tolerance of float64 computed in float32."""


@attrs.frozen(eq=False)
class BackendCase:
    """One test.

    Attributes:
        name: as onnx calls it; of kinds but "node", with the kind before it.
        source: what the model is loaded from.
        sets: pairs of inputs and outputs, each a list.
        relative: the relative tolerance.
        absolute: the absolute tolerance.
    """

    name: str
    source: bytes | Path
    sets: list = attrs.field(repr=False)
    relative: float
    absolute: float


@attrs.frozen
class Outcome:
    """The outcome of a test.

    Attributes:
        way: how it was run, "" if it was refused in every way.
        wrong: the difference or the reason of the refusal; "" where the test passes.
    """

    way: str
    wrong: str

    @property
    def kind(self):
        """The list in which the test belongs."""
        return "refused" if not self.way else "wrong" if self.wrong else self.way


@cache
def backend_cases():
    """Return all tests that are in the package, by name; takes seconds."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what they compute their expectations with overflows
        tests = [test for kind in OFFLINE for test in load_model_tests(kind=kind)]
        return {case.name: case for case in map(_case, tests)}


def _case(test):
    name = test.name if test.kind == "node" else f"{test.kind}/{test.name}"
    if test.model is not None:
        sets = [tuple([*map(_plain, part)] for part in pair) for pair in test.data_sets]
        return BackendCase(name, test.model.SerializeToString(), sets, test.rtol, test.atol)
    folder = Path(test.model_dir)
    sets = [
        tuple([_read(path) for path in sorted(part.glob(f"{kind}_*.pb"))] for kind in ("input", "output"))
        for part in sorted(folder.glob("test_data_set_*"))
    ]
    return BackendCase(name, folder / "model.onnx", sets, test.rtol, test.atol)


def _plain(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _read(path):
    """Return a tensor; None for a sequence, which no model here may have."""
    try:
        return numpy_helper.to_array(onnx.load_tensor(path))
    except (ValueError, TypeError):
        return None


async def outcome(context, case):
    """Run a test."""
    reasons = []
    for way in WAYS:
        try:
            wrong = await _wrong(context, case, way)
        except InvalidModelError as error:
            return Outcome(way, f"it is called invalid: {error}")
        except ValueError as error:  # an UnsupportedModelError, or an input that is a sequence or of strings
            reasons.append(str(error))
            continue
        return Outcome(way, wrong)
    return Outcome("", reasons[0])


async def _wrong(context, case, way):
    """Return how the outputs differ from those of the test, "" if they do not."""
    is_narrowed = way == "narrowed"
    loaded = OnnxModel.load(case.source, narrow_float64=is_narrowed)
    if is_narrowed:
        case = attrs.evolve(case, relative=max(case.relative, NARROWED))
    for inputs, outputs in case.sets:
        given = dict(zip(loaded.inputs, inputs, strict=False))
        arrays = {
            name: np.asarray(value) for name, value in given.items() if isinstance(value, (np.ndarray, np.generic))
        }
        if is_narrowed:
            arrays = {name: _narrowed(value) for name, value in arrays.items()}
        known = {"run": [], "rest known": list(arrays)[1:], "known": list(arrays), "narrowed": list(arrays)[1:]}[way]
        actual = await _computed(context, loaded, arrays, known)
        for name, ours, theirs in zip(loaded.outputs, actual, outputs, strict=True):
            if wrong := _difference(case, ours, _narrowed(theirs) if is_narrowed else theirs):
                return f"output {name}: {wrong}"
    return ""


def _narrowed(value):
    """Return an array with float32 in place of float64.

    Raises:
        ValueError: float32 cannot hold a value.
    """
    array = np.asarray(value)
    if array.dtype != np.float64:
        return array
    with np.errstate(all="ignore"):
        narrow = array.astype(np.float32)
    if not np.array_equal(np.isfinite(narrow), np.isfinite(array)):
        raise ValueError("float32 cannot hold it")
    return narrow


async def _computed(context, loaded, arrays, known):
    builder = MLGraphBuilder(context)
    operands = loaded.convert(
        builder,
        {name: value.shape for name, value in arrays.items() if name not in known},
        {name: arrays[name] for name in known},
    )
    outputs = await compute_graph(context, await builder.build(operands), arrays)
    return [outputs[name] for name in loaded.outputs]


def _difference(case, ours, theirs):
    """Return how two arrays differ, in words; booleans are uint8 here."""
    theirs = np.asarray(theirs)
    if theirs.dtype == np.bool_:
        theirs = theirs.astype(np.uint8)
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"it is {ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    with np.errstate(all="ignore"):
        finite = np.abs(theirs[np.isfinite(theirs)], dtype=np.float64)
        absolute = max(case.absolute, ROUNDING * finite.max(initial=0))
        close = np.isclose(ours, theirs, rtol=case.relative, atol=absolute, equal_nan=True)
        if close.all():
            return ""
        largest = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max()
    return f"{np.count_nonzero(~close)} of {close.size} elements differ, by up to {largest:g}"
