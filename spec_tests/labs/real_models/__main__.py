"""Real models, here and in onnxruntime: ``python -m spec_tests.labs.real_models [--backend numpy] [NAME …]``.

Their packages are downloaded into a folder (``--folder``). Prints a line for each model, and fails where one is not as
listed. Models whose outputs mean something are asked questions, too, whose answers must be the same: the text of a
line, the class, the places of faces. Models of quantized weights are compared node by node, too, with ``--apart`` all;
as a whole they may differ from onnxruntime as far as it does from itself where floats on the way are moved by a unit in
the last place.
"""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

import trio

from spec_tests.labs.real_models.comparison import compared, compared_apart, from_itself
from spec_tests.labs.real_models.listed import listed
from spec_tests.labs.real_models.meanings import answered
from spec_tests.labs.real_models.packages import NotHadError, path_of
from spec_tests.labs.real_models.sensitivity import moves_by, moving_answers
from webnn_py.onnx_models import UnsupportedModelError

SLOWEST = 3
"""Seconds to read a model of up to so many nodes; of more, in proportion."""
MANY_NODES = 1500
AS_FAR = 1.01
"""The same number may be rounded the other way here and there, and what follows is off by its own few units."""


def outcome(model, path, options):
    """Return the result of a model: its line, whether it is as listed, and whether it is onnxruntime's bit for bit."""
    try:
        result = trio.run(partial(compared, model, path, options.backend))
    except UnsupportedModelError as error:
        return f"refused: {error.problems[0]}", bool(model.refused) and model.refused in str(error), False
    line = f"{result.nodes:5} nodes  {result.seconds:6.3f} s  {result.difference:8.1e}"
    good = not model.refused and result.seconds <= SLOWEST * max(1, result.nodes / MANY_NODES)
    measured = result.difference
    if result.from_exact is not None:
        ours, theirs = result.from_exact
        line += f"  from float64 {ours:8.1e}, onnxruntime {theirs:8.1e}"
        measured = min(measured, ours)
    allowed, moving = model.bound, 0
    if model.rounds:
        optimized, moved = from_itself(model, path), moves_by(model, path)
        line += f"  onnxruntime from itself {optimized:8.1e} optimized, {moved:8.1e} moved"
        allowed = max(allowed, AS_FAR * optimized, AS_FAR * moved)
    good = good and measured <= allowed
    if model.meaning:
        told = trio.run(partial(answered, model, path, options.backend, options.folder))
        line += f"  {model.meaning}: {told.same} of {told.asked} the same: {told.shown}"
        if model.rounds and told.same < told.asked:
            moving = moving_answers(model, path, options.folder)
            line += f"  {moving} of onnxruntime's move"
        good = good and told.asked - told.same <= moving
    if model.rounds or options.apart:
        told = trio.run(partial(compared_apart, model, path, options.backend))
        line += f"  apart {told.difference:8.1e}, {told.steps} steps of {told.compared}"
        good = good and told.difference <= model.bound_apart and told.steps <= 1
        line += "" if good else f", at {told.where}"
    return line, good, result.are_bits


def _outcome_or_failure(model, path, options):
    """Return the result of a model; one that neither side can run is not as listed, and the others go on."""
    try:
        return outcome(model, path, options)
    except Exception as error:  # noqa: BLE001 - onnxruntime's own errors, or a fault to be found
        return f"failed: {type(error).__name__}: {str(error)[:300]}", False, False


def main():
    parser = argparse.ArgumentParser(description="Compare real models with onnxruntime.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names; all by default")
    parser.add_argument("--apart", action="store_true", help="compare all models node by node, too")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "webnn_py" / "real_models")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [model for model in listed() if not options.names or any(part in model.name for part in options.names)]
    bad, count, bits = [], 0, 0
    for model in chosen:
        try:
            path = path_of(model, options.folder)
        except NotHadError as error:
            line, good, are_bits = f"not had: {error}", False, False
        else:
            line, good, are_bits = _outcome_or_failure(model, path, options)
        count += good and not model.refused
        bits += are_bits
        bad += [] if good else [model.name]
        print(f"{'' if good else 'NOT AS LISTED '}{model.name}: {line}", flush=True)
    print(f"{count} of {len(chosen)} agree, {bits} of them to the bit")
    sys.exit(f"not as listed: {', '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()
