"""The conformance cases of web-platform-tests, written as ONNX models and run by onnxruntime."""

import attrs
import pytest
import trio

import webnn_py
from spec_tests.onnx_models.export.exporting import LISTED as LIST
from spec_tests.onnx_models.export.exporting import listed, run
from spec_tests.support.depth import has_turn, is_full
from spec_tests.wpt.exceptions import expected_failures
from spec_tests.wpt.option import needed_vectors
from spec_tests.wpt.test_vectors import wrong
from spec_tests.wpt.vectors import draw, read
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import to_model

NOT_DRAWN = expected_failures("vectors")
"""Those that fail here, too, or cannot be drawn."""

LISTED = {identifier: entry for entry in listed("vectors") for identifier in entry["ids"]}
PASSING = 1700
PARTS = 5
"""A quick run has one case in so many."""


@pytest.fixture(scope="module")
def vectors(pytestconfig):
    return [vector for vector in read(needed_vectors(pytestconfig)) if vector.id not in NOT_DRAWN]


async def results_of(vectors):
    """Compute each vector by onnxruntime; an error where it fails."""
    results = {}
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        for vector in vectors:
            builder = MLGraphBuilder(context)
            inputs, operands = draw(builder, vector.raw)
            model = to_model({name: operands[name] for name in vector.raw["expectedOutputs"]})
            try:
                results[vector.id] = run(model, inputs)
            except Exception as error:  # noqa: BLE001 - told with the others
                results[vector.id] = error
    return results


def verdict(result, vector):
    """Return the error of a result, or None."""
    return f"{type(result).__name__}: {result}" if isinstance(result, Exception) else wrong(result, vector)


def test_onnxruntime_computes_what_the_vectors_expect(pytestconfig, vectors):
    parts = 1 if is_full(pytestconfig) else PARTS
    tested = [vector for vector in vectors if has_turn(pytestconfig, vector.id, parts)]
    results = trio.run(results_of, tested)
    verdicts = {vector.id: verdict(results[vector.id], vector) for vector in tested}
    unexpected = {identifier: words for identifier, words in verdicts.items() if words and identifier not in LISTED}
    assert not unexpected, "\n".join(f"{identifier}: {words}" for identifier, words in unexpected.items())
    passing = {identifier for identifier, words in verdicts.items() if not words}
    assert not passing & set(LISTED), f"passes, but is listed in {LIST.name}: delete the entry"
    for vector in tested:
        if vector.id in LISTED:
            tolerance = {"metricType": "ATOL", "value": LISTED[vector.id]["absolute"]}
            changed = attrs.evolve(vector, raw=vector.raw | {"tolerance": tolerance})
            words = verdict(results[vector.id], changed)
            assert words is None, f"{vector.id}: {words}"


def test_as_many_pass_as_are_said_to(vectors):
    assert not set(LISTED) - {vector.id for vector in vectors}
    assert len(vectors) - len(LISTED) == PASSING
