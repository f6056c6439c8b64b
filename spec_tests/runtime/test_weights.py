"""Weights are on the device once for all shapes and sessions that use them."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from spec_tests.support.onnx_programs import product
from spec_tests.support.runtime import live
from webnn_py.onnx_models import OnnxModel

WEIGHTS = np.random.default_rng(716).standard_normal((256, 64)).astype(np.float32)
ELSEWHERE = 4096
"""Far less than the weights: buffers of inputs, outputs and intermediates."""


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 256)).astype(np.float32)


async def check(session, count, weights=WEIGHTS):
    results = await session.run({"x": rows(count)})
    np.testing.assert_allclose(results["y"].data, rows(count) @ weights, rtol=1e-3, atol=1e-3)


async def test_a_further_shape_takes_no_further_weights(env):
    async with await env.create_session(product(WEIGHTS)) as session:
        await check(session, 2)
        await env.drain()
        before = live(env.statistics())[1]
        assert before >= WEIGHTS.nbytes
        for count in (1, 3):
            await check(session, count)
        await env.drain()
        # A product of one row may keep its own form of the weights; one more of several rows may not.
        grown = live(env.statistics())[1] - before
        assert grown < WEIGHTS.nbytes + 2 * ELSEWHERE, f"{grown} bytes more"
        settled = live(env.statistics())[1]
        await check(session, 4)
        await env.drain()
        assert live(env.statistics())[1] - settled < 2 * ELSEWHERE
    assert live(env.statistics()) == (0, 0)


@pytest.mark.parametrize("source", ["one model", "the same bytes"])
async def test_a_further_session_takes_no_further_weights_and_the_last_one_gives_them_back(env, source):
    loaded = OnnxModel.load(product(WEIGHTS))

    async def create():
        return await env.create_session(loaded if source == "one model" else product(WEIGHTS))

    first = await create()
    await check(first, 2)
    await env.drain()
    before = live(env.statistics())[1]
    second = await create()
    await check(second, 2)
    await env.drain()
    assert live(env.statistics())[1] - before < 2 * ELSEWHERE
    await first.release()
    await check(second, 2)
    assert live(env.statistics())[1] >= WEIGHTS.nbytes
    await second.release()
    assert live(env.statistics()) == (0, 0)


async def test_weights_of_equal_shape_differ_by_their_bytes(env):
    one = await env.create_session(product(WEIGHTS))
    other = await env.create_session(product(-2 * WEIGHTS))
    for _ in range(2):
        await check(one, 2)
        await check(other, 2, -2 * WEIGHTS)
    await one.release()
    await check(other, 2, -2 * WEIGHTS)
    await other.release()


async def test_a_model_can_be_converted_again_and_again(env):
    """The weights are read once, and the bytes of the model are dropped."""
    model = OnnxModel.load(product(WEIGHTS))
    for _ in range(2):
        async with await env.create_session(model) as session:
            await check(session, 2)
    (tensor,) = model._proto.graph.initializer
    assert not tensor.HasField("raw_data")


def test_weights_are_never_written():
    proto = onnx.load_model_from_string(product(WEIGHTS))
    del proto.graph.initializer[:]
    as_floats = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=WEIGHTS.shape)
    as_floats.float_data.extend(WEIGHTS.reshape(-1).tolist())
    proto.graph.initializer.append(as_floats)
    for model in (OnnxModel.load(proto.SerializeToString()), OnnxModel.load(product(WEIGHTS))):
        model.read_weights()
        (value,) = model._weights._values.values()
        assert not value.flags.writeable
        np.testing.assert_array_equal(value, numpy_helper.to_array(numpy_helper.from_array(WEIGHTS)))
