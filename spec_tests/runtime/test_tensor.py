"""Tensors by themselves: what they are made of, what they say, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest

from spec_tests.support.runtime import lose
from webnn_py import InvalidStateError
from webnn_py.runtime import Environment, Tensor
from webnn_py.runtime.transfer import MOST_CAST_GRAPHS


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1.0], "list given; it must be a numpy array"),
        (np.zeros(2), "an array of float64 given; it must be one of bool, float32"),
        (np.zeros(2, ">f4"), "an array of >f4 given; .* of the machine's own byte order"),
        (np.array(["a"]), "an array of <U1 given"),
    ],
)
def test_other_arrays_than_of_a_known_type_are_refused(given, words):
    with pytest.raises(TypeError, match=rf"Tensor\(\): {words}"):
        Tensor(given)


def test_arrays_are_copied_with_their_tensors():
    tensor = Tensor(np.arange(3, dtype=np.int32))
    for other in (copy.deepcopy(tensor), copy.copy(tensor)):
        np.testing.assert_array_equal(other.data, tensor.data)
        assert other is not tensor


async def test_tensors_on_the_device_are_neither_copied_nor_pickled(env, x):
    tensor = await env.create_tensor(x)
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a tensor on the device can be neither copied nor pickled"):
            use(tensor)


async def test_a_tensor_on_the_device_has_no_data_at_hand(env, x):
    tensor = await env.create_tensor(x)
    with pytest.raises(InvalidStateError, match=r"data: <Tensor .*> is on the device; array = await"):
        tensor.data  # noqa: B018 - reading it is the test
    tensor.dispose()
    with pytest.raises(InvalidStateError, match=r"data: <Tensor .*disposed> was disposed of"):
        tensor.data  # noqa: B018 - likewise


async def test_a_tensor_on_the_host_gives_its_own_array(env, x):
    tensor = Tensor(x)
    assert await tensor.get_data() is x
    assert await tensor.get_data(True) is x
    assert tensor.disposed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give an array, or data_type and dims"),
        ({"data_type": "float32"}, "give an array, or data_type and dims"),
        ({"data": np.zeros(1, np.float32), "dims": [1]}, "the array has its own data type and dimensions"),
        ({"data": [1]}, "list given; it must be a numpy array"),
        ({"data_type": "float64", "dims": [1]}, "data_type is 'float64'; it must be one of"),
        ({"data_type": "float32", "dims": [0]}, r"shape is \[0\]; dimension 0 must be from 1"),
    ],
)
async def test_wrong_arguments_for_a_tensor_on_the_device_are_refused(env, arguments, words):
    with pytest.raises(TypeError, match=rf"create_tensor\(\): {words}"):
        await env.create_tensor(**arguments)
    await env.drain()
    assert env.statistics().live_buffers == 0


async def test_arrays_that_cannot_be_filled_are_no_destinations(env, x):
    tensor = await env.create_tensor(x)
    fixed = np.zeros_like(x)
    fixed.flags.writeable = False
    for target in (fixed, np.zeros((2, 6), np.float32)[:, ::2]):
        with pytest.raises(TypeError, match=r"destinations\[0\] is an array that is not writable and C-contiguous"):
            await env.copy_tensors([tensor], [Tensor(target)])


async def test_a_tensor_of_a_lost_device_names_the_loss(env, x):
    tensor = await env.create_tensor(x)
    context = env.device.context
    lose(context)
    await context.lost
    for use in (tensor.get_data, lambda: env.zero(tensor), lambda: tensor.copy_from(Tensor(x))):
        with pytest.raises(InvalidStateError, match=r"is gone with its device, which was lost: .*driver crashed"):
            await use()


async def test_casts_are_kept_up_to_a_number(env):
    tensors = [await env.create_tensor(data_type="int32", dims=[size]) for size in range(1, MOST_CAST_GRAPHS + 4)]
    graphs = env._owner.current.cast_graphs
    for tensor in tensors:
        (await env.cast(tensor, "float32")).dispose()
    assert len(graphs) == MOST_CAST_GRAPHS
    kept = list(graphs)
    (await env.cast(tensors[-2], "float32")).dispose()
    assert sorted(graphs) == sorted(kept)
    assert list(graphs)[-1] == ("int32", tensors[-2].dims, "float32")


async def test_a_cast_needs_another_place(env):
    tensor = await env.create_tensor(data_type="int32", dims=[1])
    with pytest.raises(TypeError, match=r"cast\(\): out is the tensor itself"):
        await env.cast(tensor, "int32", out=tensor)


async def test_an_environment_refuses_wrong_contexts(ml, numpy_context):
    with pytest.raises(TypeError, match=r"Environment\(\): context is int; it must be an MLContext"):
        Environment(ml, context=1)
    with pytest.raises(TypeError, match=r"Environment\(\): a context has its own device; give no backend"):
        Environment(ml, "numpy", context=numpy_context)
    env = Environment(ml, "numpy")
    assert repr(env) == "<Environment 0 sessions, no device>"
    await env.close()
    assert repr(env) == "<Environment 0 sessions, no device, closed>"
