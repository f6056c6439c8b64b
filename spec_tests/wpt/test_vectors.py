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
from spec_tests.wpt.exceptions import assert_known, expected_failures, judge
from spec_tests.wpt.option import needed_vectors
from spec_tests.wpt.vectors import Vector, draw, expected, read
from webnn_py import MLContext, MLGraphBuilder

LISTED = expected_failures("vectors")
CASES = 1734
TOO_LARGE = "bytes; it must take at most"
"""What a device says of an operand beyond its ``maxTensorByteLength``: software Vulkan has 128 MiB."""
METRICS = {"ULP": "ulp", "ATOL": "absolute"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector" in metafunc.fixturenames:
        vectors = read(needed_vectors(metafunc.config))
        metafunc.parametrize("vector", [pytest.param(vector, id=vector.id) for vector in vectors])


backend = on_each(DEVICES)


@pytest.fixture(scope="module")
def vectors(pytestconfig) -> list[Vector]:
    return read(needed_vectors(pytestconfig))


@pytest.fixture(scope="module")
def verdict_of(request, backend, options):
    """Return the error of each tested case of a file, or None; computed once."""
    tested: dict[str, list[Vector]] = {}
    for item in request.session.items:
        if item.originalname == "test_a_case_computes_what_it_expects" and item.callspec.params["backend"] == backend:
            vector = item.callspec.params["vector"]
            tested.setdefault(vector.file, []).append(vector)
    judged: dict[str, dict[str, str | None]] = {}

    def look_up(vector: Vector) -> str | None:
        if vector.file not in judged:
            judged[vector.file] = trio.run(partial(_judge_all, options, tested[vector.file]))
        return judged[vector.file][vector.id]

    return look_up


async def _judge_all(options: dict[str, Any], vectors: list[Vector]) -> dict[str, str | None]:
    verdicts: dict[str, str | None] = {}
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(**options)
        for vector in vectors:
            try:
                outputs = await _run(context, vector)
            except Exception as error:  # noqa: BLE001 - judged in the case's own test
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


@pytest.mark.sampled(5)
def test_a_case_computes_what_it_expects(backend, verdict_of, vector):
    verdict = verdict_of(vector)
    if backend == "wgpu" and verdict is not None and TOO_LARGE in verdict:
        pytest.xfail(f"larger than a storage buffer of this adapter ({verdict})")
    judge(vector.id, verdict, LISTED)


def test_all_cases_are_there(vectors):
    assert len(vectors) == CASES
    assert len({vector.id for vector in vectors}) == CASES


def test_only_known_cases_are_expected_to_fail(vectors):
    assert_known(LISTED, [vector.id for vector in vectors])
    assert len(LISTED) <= 20


def test_a_shifted_expectation_is_reported(options, vectors):
    """The runner can fail: on the first case of every file that computes anything."""
    first = {vector.file: vector for vector in reversed(vectors) if vector.id not in LISTED}

    async def run_all() -> dict[str, dict[str, np.ndarray]]:
        async with webnn_py.open_ml() as ml:
            context = await ml.create_context(**options)
            return {file: await _run(context, vector) for file, vector in first.items()}

    for file, outputs in trio.run(run_all).items():
        assert wrong(outputs, first[file]) is None
        with np.errstate(all="ignore"):
            shifted = {name: (array + array.dtype.type(1)) * array.dtype.type(3) for name, array in outputs.items()}
        assert wrong(shifted, first[file]), f"{file}: wrong outputs were not reported"
