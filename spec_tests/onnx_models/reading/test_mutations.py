"""Models from strangers: changes of a real one cause documented errors only, soon, and with little memory."""

import time
import tracemalloc

import attrs
import numpy as np
import onnx
import pytest

from spec_tests.onnx_models.reading.foreign_models import MODELS
from spec_tests.onnx_models.reading.hostile import hostile_cases
from spec_tests.onnx_models.reading.mutations import mutated_bytes, mutated_structure, weights_in
from spec_tests.onnx_models.test_table import CATEGORIES, cases_of
from spec_tests.support.depth import amount, has_turn
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import InvalidModelError, ModelLimits, OnnxModel, UnsupportedModelError

LIMITS = ModelLimits(nodes=5000, bytes=32 << 20, seconds=2)
MOST_SECONDS = 5.0
MOST_BYTES = 4 * LIMITS.bytes
"""A value computed on the way may be as long as its source, and the builder copies constants."""

LONGEST_TEXT = 100_000
LONGEST_NOTE = 1000
OF_ALL_MODELS = {"quick": 160, "full": 1000, "thorough": 10_000}
"""So many mutations are tried of each kind, over all models."""

OF_CATEGORY = {"quick": 15, "full": 200, "thorough": 2000}
"""So many of the models of one node, for each category of operators."""

ONE_HOSTILE_IN = {"quick": 199, "full": 11, "thorough": 1}
"""Of the nodes with hostile attributes and shapes, one in so many is tried."""

SHARES = {name: 0.02 if name == "trained" else 0.98 / (len(MODELS) - 1) for name in MODELS}
"""The trained model's 3 MB take longest."""


def convert(context, data):
    """Load and convert a model; what it leaves open of its inputs is 2."""
    model = OnnxModel.load(data, limits=LIMITS)
    shapes = {
        name: [2, 3] if info.shape is None else [size if isinstance(size, int) else 2 for size in info.shape]
        for name, info in model.inputs.items()
    }
    return model.convert(MLGraphBuilder(context), input_shapes=shapes)


def model_of(case):
    """Return a case's model in bytes; None where ONNX's own helpers cannot write it."""
    try:
        return case.model()
    except (TypeError, ValueError):  # the helpers find no type for an empty list
        return None


def outcome(context, data):
    """Return "converted", or the name of the documented error; anything else is a failure."""
    try:
        convert(context, data)
    except (InvalidModelError, UnsupportedModelError) as error:
        refusal = error
    else:
        return "converted"
    # The net under the rules holds, but nothing must fall into it.
    assert "cannot be understood" not in str(refusal), str(refusal)
    assert len(str(refusal)) < LONGEST_TEXT
    return type(refusal).__name__


def outcome_in_time(context, data, which):
    """Return the outcome of a mutation, which must not take long."""
    started = time.thread_time()
    try:
        result = outcome(context, data)
    except Exception as error:
        error.add_note(which)
        raise
    spent = time.thread_time() - started
    assert spent < MOST_SECONDS, f"{which}: {spent} s"
    return result


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture
def count(request, name):
    return round(amount(request.config, **OF_ALL_MODELS) * SHARES[name])


@pytest.fixture
def seed(request):
    return request.config.option.seed


@pytest.mark.parametrize("kind", ["bytes", "structure"])
async def test_a_mutated_model_is_converted_or_refused_by_a_documented_error(context, name, kind, count, seed):
    proto = MODELS[name]()
    original = proto.SerializeToString()
    protected = weights_in(original, proto)
    assert outcome(context, original) == "converted"
    seen = set()
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        if kind == "bytes":
            data = mutated_bytes(original, rng, protected)
        else:
            data = mutated_structure(proto, rng).SerializeToString()
        seen.add(outcome_in_time(context, data, f"mutation {index} of {kind} of the model {name}, --seed={seed}"))
    if count > 150:
        assert {"converted", "InvalidModelError"} <= seen, "mutations change too much, or too little"


@pytest.mark.parametrize("category", CATEGORIES)
async def test_a_mutated_node_is_converted_or_refused_by_a_documented_error(context, category, request, seed):
    cases = cases_of(category)
    for index in range(amount(request.config, **OF_CATEGORY)):
        rng = np.random.default_rng([seed, index])
        case = cases[int(rng.integers(len(cases)))]
        if index % 2:
            known = [place for place, item in enumerate(case.inputs) if item is not None]
            case = attrs.evolve(case, known=tuple(known))
        data = mutated_structure(onnx.load_model_from_string(case.model()), rng).SerializeToString()
        outcome_in_time(context, data, f"mutation {index} of {category}, --seed={seed}: {case}")


@pytest.mark.parametrize("category", CATEGORIES)
async def test_a_node_with_hostile_attributes_and_shapes_is_converted_or_refused_by_a_documented_error(
    context, category, request, seed
):
    parts = amount(request.config, **ONE_HOSTILE_IN)
    for index, changed in enumerate(hostile_cases(cases_of(category))):
        if has_turn(request.config, f"{category} {index}", parts) and (data := model_of(case := changed())) is not None:
            outcome_in_time(context, data, f"hostile case {index} of {category}, --seed={seed}: {case}"[:LONGEST_NOTE])


async def test_a_mutated_model_takes_little_memory(context, name, count, seed):
    proto = MODELS[name]()
    for index in range(max(2, count // 10)):
        data = mutated_structure(proto, np.random.default_rng([seed, index])).SerializeToString()
        tracemalloc.start()
        try:
            outcome(context, data)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < MOST_BYTES, f"mutation {index} of {name}, --seed={seed}: {peak:,} bytes"
