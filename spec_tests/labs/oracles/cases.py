"""Operator cases in several places: where a result is not what the oracle says, and which of that is known."""

from functools import partial

import attrs
import numpy as np
import trio

from spec_tests.labs.oracles.places import LEVELS, options_of
from spec_tests.labs.real_models.comparison import session_of
from spec_tests.onnx_models.export.exporting import draw_cases, listed
from spec_tests.operators.cases import difference
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Computed
from webnn_py import open_ml
from webnn_py.onnx_models import to_model

OF_MODELS = {(entry["operator"], name): entry["reason"] for entry in listed("cases") for name in entry["names"]}
LESS_EXACT = {entry["operator"]: entry for entry in listed("tolerances")}


@attrs.frozen
class WrongCase:
    """A case that a place computes otherwise than its oracle.

    Attributes:
        place: the place.
        operator: the operator, by its Python name.
        name: the case.
        text: what is wrong.
        reason: why, where that is known.
    """

    place: str
    operator: str
    name: str
    text: str
    reason: str | None


def wrong_cases(place, file, **options):
    """The cases of a file that a place computes otherwise; ``options`` go to ``create_context()``."""
    if place in LEVELS:
        yield from _of_model(place, file)
        return
    options = options_of(place) | options
    computed = Computed.of(options.pop("backend"), file, **options)
    for case in file.cases:
        if words := computed.what_is_wrong(case):
            reason = EXCEPTIONS.get((place, file.operator, case.name))
            yield WrongCase(place, file.operator, case.name, words, reason)


def _of_model(place, file):
    results = trio.run(partial(_run_model, file, LEVELS[place]))
    for case in file.cases:
        words, reason = _what_is_wrong(results[case.name], case), OF_MODELS.get((file.operator, case.name))
        if words and file.operator in LESS_EXACT:
            entry = LESS_EXACT[file.operator]
            if not _what_is_wrong(results[case.name], case, {"absolute": entry["absolute"]}):
                reason = entry["reason"]
        if words:
            yield WrongCase(place, file.operator, case.name, words, reason)


async def _run_model(file, level):
    """All cases of a file in one model."""
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        _builder, feeds, outputs = draw_cases(context, file, file.cases, constants=True)
        model = to_model({name: item for of_case in outputs.values() for name, item in of_case.items()})
    session = session_of(model.SerializeToString(), level)
    names = [item.name for item in session.get_outputs()]
    needed = {item.name for item in session.get_inputs()}
    given = {name: np.asarray(array) for name, array in feeds.items() if name in needed}
    arrays = dict(zip(names, session.run(names, given), strict=True))
    return {case: [arrays[name] for name in of_case] for case, of_case in outputs.items()}


def _what_is_wrong(got, case, tolerance=None):
    pairs = zip(got, case.expected, strict=True)
    return "; ".join(words for pair in pairs if (words := difference(*pair, tolerance or case.tolerance)))
