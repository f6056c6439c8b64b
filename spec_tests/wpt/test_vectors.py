"""Every conformance case of web-platform-tests computes what it expects, within its own tolerance."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import trio

import webnn_py
from spec_tests.operators.cases import difference
from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.computing import compute
from spec_tests.support.depth import amount, share
from spec_tests.wpt.exceptions import assert_known, expected_failures, judge_all
from spec_tests.wpt.option import needed_vectors
from spec_tests.wpt.vectors import Vector, draw, expected, read
from webnn_py import MLContext, MLGraphBuilder

LISTED = expected_failures("vectors")
CASES = 1734
TOO_LARGE = "bytes; it must take at most"
"""A device's refusal of an operand beyond its ``maxTensorByteLength``: software Vulkan has 128 MiB."""
PARTS = 11
"""On other devices than numpy, a quick run has one case of a file in so many."""
METRICS = {"ULP": "ulp", "ATOL": "absolute"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "file" in metafunc.fixturenames:
        files = dict.fromkeys(vector.file for vector in read(needed_vectors(metafunc.config)))
        metafunc.parametrize("file", files)


backend = on_each(DEVICES)


@pytest.fixture(scope="module")
def vectors(pytestconfig) -> list[Vector]:
    return read(needed_vectors(pytestconfig))


async def _judge_all(options: dict[str, Any], vectors: list[Vector]) -> dict[str, str | None]:
    verdicts: dict[str, str | None] = {}
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(**options)
        for vector in vectors:
            try:
                outputs = await _run(context, vector)
            except Exception as error:  # noqa: BLE001 - judged with the others
                verdicts[vector.id] = f"{type(error).__name__}: {error}"
            else:
                verdicts[vector.id] = wrong(outputs, vector)
    return verdicts


async def _run(context: MLContext, vector: Vector) -> dict[str, np.ndarray]:
    builder = MLGraphBuilder(context)
    inputs, operands = draw(builder, vector.raw)
    outputs = {name: operands[name] for name in vector.raw["expectedOutputs"]}
    return await compute(context, builder, inputs, outputs)


def wrong(outputs: dict[str, np.ndarray], vector: Vector) -> str | None:
    """Return the error of a case's outputs, or None."""
    tolerance = {METRICS[vector.raw["tolerance"]["metricType"]]: vector.raw["tolerance"]["value"]}
    for name, tensor in vector.raw["expectedOutputs"].items():
        output, wanted = outputs[name], expected(tensor)
        if output.shape != tuple(tensor["shape"]):
            return f"{name}: the shape is {list(output.shape)}, expected {tensor['shape']}"
        words = difference(output.ravel()[: wanted.size], wanted.ravel(), tolerance)
        if words:
            return f"{name}: {words}"
    return None


def test_the_cases_of_a_file_compute_what_they_expect(pytestconfig, backend, options, vectors, file):
    named = pytestconfig.option.case or ""
    cases = [vector for vector in vectors if vector.file == file and named in vector.id]
    if backend != "numpy" and not named:
        parts = amount(pytestconfig, quick=PARTS, full=1, thorough=1)
        wanted = share(pytestconfig, [vector.id for vector in cases], parts, least=1)
        cases = [vector for vector in cases if vector.id in wanted]
    verdicts = trio.run(partial(_judge_all, options, cases))
    if backend == "wgpu":
        verdicts = {name: words for name, words in verdicts.items() if TOO_LARGE not in (words or "")}
    judge_all(verdicts, LISTED)


def test_all_cases_are_there(vectors):
    assert len(vectors) == CASES
    assert len({vector.id for vector in vectors}) == CASES


def test_only_known_cases_are_expected_to_fail(vectors):
    assert_known(LISTED, [vector.id for vector in vectors])
    assert len(LISTED) <= 20


def test_a_shifted_expectation_is_reported(vectors):
    """The runner can fail: on the first case of every file that computes anything."""
    first = {vector.file: vector for vector in reversed(vectors) if vector.id not in LISTED}

    async def run_all() -> dict[str, dict[str, np.ndarray]]:
        async with webnn_py.open_ml() as ml:
            context = await ml.create_context(backend="numpy")
            return {file: await _run(context, vector) for file, vector in first.items()}

    for file, outputs in trio.run(run_all).items():
        assert wrong(outputs, first[file]) is None
        with np.errstate(all="ignore"):
            shifted = {name: (array + array.dtype.type(1)) * array.dtype.type(3) for name, array in outputs.items()}
        assert wrong(shifted, first[file]), f"{file}: wrong outputs were not reported"
