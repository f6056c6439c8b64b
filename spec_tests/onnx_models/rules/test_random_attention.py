"""Attention with lengths that are known when the graph runs: random mixes of inputs and attributes, as onnxruntime."""

from functools import partial

import attrs
import numpy as np
import pytest

from spec_tests.onnx_models.rules.random_attention import (
    attention,
    cached_attention,
    group_query,
    multi_head,
    packed,
    scatter,
)
from spec_tests.onnx_models.single_node import assert_same, expected, run
from spec_tests.support.backends import BACKENDS, on_each
from spec_tests.support.cache_facts import KEEPING
from spec_tests.support.depth import amount
from spec_tests.support.sampled_engine import owner
from spec_tests.support.watched_device import context_on
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION
from webnn_py.devices.numpy.backend import NumpyBackend
from webnn_py.devices.numpy.composites import cached_attention as numpy_attention

SHARES = {"numpy": 1, "onnxruntime": 0.5, "wgpu": 0.05}
"""How many of the cases each device has."""

MOST = 1e-4

backend = on_each(BACKENDS)


@pytest.fixture
def seeds(request, backend):
    """Return the seeds of the cases of a device, by the depth."""
    return range(max(2, int(SHARES[backend] * amount(request.config, quick=40, full=500, thorough=5000))))


def assert_near(actual, wanted, counts, most=MOST):
    """Compare results; of a sample whose prompt is shorter than others' the rows behind its end mean nothing."""
    assert [(item.shape, item.dtype) for item in actual] == [(item.shape, item.dtype) for item in wanted]
    actual, wanted = ([item.astype(np.float32) for item in items] for items in (actual, wanted))
    for sample, count in enumerate(counts):
        np.testing.assert_allclose(actual[0][sample, :count], wanted[0][sample, :count], rtol=most, atol=most)
    for ours, theirs in zip(actual[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=most, atol=most)


async def test_attention_to_a_cache_is_onnxruntimes(context, backend, seeds):
    for seed in seeds:
        case, counts = group_query(np.random.default_rng(seed))
        assert_near(
            await run(context, case.model(), case.feeds),
            cached_attention(case, keeps=owner(backend) in KEEPING),
            counts,
        )


async def test_queries_may_be_computed_one_by_one(numpy_context, monkeypatch):
    monkeypatch.setattr(numpy_attention, "allowance", lambda _node: 0)
    for seed in range(12):
        case, counts = group_query(np.random.default_rng(seed), kind=("prompt", "continued")[seed % 2])
        assert_near(await run(numpy_context, case.model(), case.feeds), expected(case), counts)


async def test_attention_drawn_by_masks_over_positions_is_onnxruntimes(ml):
    there = (backend := NumpyBackend()).capabilities
    own = attrs.evolve(there, supports=lambda item: () if item is GROUP_QUERY_ATTENTION else there.supports(item))
    backend.capabilities = own
    context = await context_on(ml, backend)
    for seed in range(16):
        case, counts = group_query(np.random.default_rng(seed))
        assert_near(await run(context, case.model(), case.feeds), expected(case), counts)


async def test_attention_of_float16_to_a_cache(context, backend, seeds):
    for seed in seeds[::8]:
        case, counts = group_query(np.random.default_rng(seed))
        with np.errstate(under="ignore"):
            inputs = [
                item if item is None or item.dtype.kind != "f" else item.astype(np.float16) for item in case.inputs
            ]
        case = attrs.evolve(case, inputs=tuple(inputs))
        assert_near(
            await run(context, case.model(), case.feeds),
            cached_attention(case, keeps=owner(backend) in KEEPING),
            counts,
            2e-2,
        )


OTHERS = {
    "multi-head": multi_head,
    "packed": packed,
    "Attention-23": partial(attention, version=23),
    "Attention-24": partial(attention, version=24),
    "TensorScatter": scatter,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
async def test_other_attention_is_onnxruntimes(context, seeds, make):
    for seed in seeds[::4]:
        case = make(np.random.default_rng(seed))
        assert_same(await run(context, case.model(), case.feeds), expected(case), relative=MOST, absolute=MOST)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "change", [{"seqlens_k": 9}, {"total_sequence_length": 9}, {"seqlens_k": -1}, {"seqlens_k": 2**31 - 1}]
)
async def test_a_length_beyond_the_cache_gives_nan(context, change):
    random = np.random.default_rng(7)
    case, _ = group_query(random, kind="decode", batch=2, capacity=6)
    names = {"seqlens_k": "x5", "total_sequence_length": "x6"}
    feeds = dict(case.feeds)
    for name, value in change.items():
        feeds[names[name]] = np.full_like(feeds[names[name]], value)
    output, *_ = await run(context, case.model(), feeds)
    assert np.isnan(output).all()
