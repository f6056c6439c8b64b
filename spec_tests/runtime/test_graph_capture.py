"""A captured run is run again on its own tensors, and on no others."""

import numpy as np
import pytest

from spec_tests.support.onnx_programs import add, sum_and_difference
from webnn_py import InvalidStateError


async def test_a_captured_run_is_run_again_on_its_tensors_alone(env, x):
    source = await env.create_tensor(x)
    other = await env.create_tensor(x)
    target = await env.create_tensor(data_type="float32", dims=[2, 3])
    session = await env.create_session(add(), enable_graph_capture=True)
    for feeds, fetches, words in (
        ({"x": x}, {"y": target}, "input 'x' is on the host; with enable_graph_capture"),
        ({"x": source}, None, "output 'y' is on the host"),
        ({"x": source}, {"y": x.copy()}, "output 'y' is on the host"),
    ):
        with pytest.raises(TypeError, match=rf"run\(\): {words}"):
            await session.run(feeds, fetches)
    assert (await session.run({"x": source}, {"y": target})) == {"y": target}
    for feeds, fetches, words in (
        ({"x": other}, {"y": target}, "input 'x' is another tensor than the captured one, <Tensor"),
        ({"x": x}, {"y": target}, "input 'x' is another tensor than the captured one"),
        ({"x": source}, {"y": other}, "output 'y' is another tensor than the captured one"),
        ({"x": source}, None, "output 'y' is another tensor than the captured one"),
    ):
        with pytest.raises(TypeError, match=rf"run\(\): {words}"):
            await session.run(feeds, fetches)
    copies = env.statistics().host_copies
    await session.run({"x": source}, {"y": target})
    await env.drain()
    assert env.statistics().host_copies == copies
    source.dispose()
    with pytest.raises(InvalidStateError, match=r"run\(\): input 'x', <Tensor .*was disposed of"):
        await session.run({"x": source}, {"y": target})
    target.dispose()
    other.dispose()
    await session.release()


async def test_a_captured_run_may_make_its_outputs_once(env, x):
    source = await env.create_tensor(x)
    async with await env.create_session(
        sum_and_difference(), enable_graph_capture=True, preferred_output_location="gpu-buffer"
    ) as session:
        other = await env.create_tensor(x * 2)
        first = await session.run({"a": source, "b": other})
        again = await session.run({"a": source, "b": other})
        assert first == again
        np.testing.assert_array_equal(await first["s"].get_data(), x * 3)
        with pytest.raises(TypeError, match="output 's' is given a tensor; in the captured run it had none"):
            await session.run({"a": source, "b": other}, {"s": other})
        with pytest.raises(TypeError, match=r"fetches has \['s'\]; the captured run has \['s', 'd'\]"):
            await session.run({"a": source, "b": other}, ["s"])
        first["s"].dispose()
        with pytest.raises(InvalidStateError, match=r"output 's' of the captured run, <Tensor .*was disposed of"):
            await session.run({"a": source, "b": other})
        first["d"].dispose()
        other.dispose()


async def test_a_captured_run_of_some_outputs_is_not_one_of_all(env, x):
    source, other = await env.create_tensor(x), await env.create_tensor(x * 2)
    async with await env.create_session(
        sum_and_difference(), enable_graph_capture=True, preferred_output_location="gpu-buffer"
    ) as session:
        first = await session.run({"a": source, "b": other}, ["d"])
        assert await session.run({"a": source, "b": other}, ["d"]) == first
        with pytest.raises(TypeError, match=r"fetches has \['s', 'd'\]; the captured run has \['d'\]"):
            await session.run({"a": source, "b": other})
        np.testing.assert_array_equal(await first["d"].get_data(release=True), -x)
