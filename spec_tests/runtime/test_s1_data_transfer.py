"""Checklist S1: copies that depend on no session (ORT #26450)."""

import numpy as np
import pytest
import trio

from spec_tests.support.onnx_programs import add
from spec_tests.support.runtime import live, lose
from spec_tests.support.stand_ins import noted
from webnn_py import InvalidStateError, UnknownError, open_ml
from webnn_py.runtime import Environment, Tensor


async def on_device(env, *arrays):
    return [await env.create_tensor(array) for array in arrays]


def dispose(*tensors):
    for tensor in tensors:
        tensor.dispose()


async def test_s1_1_and_2_copies_need_no_session_and_no_registration(env, x):
    (tensor,) = await on_device(env, x)
    target = Tensor(np.zeros_like(x))
    assert env.sessions == ()
    await env.copy_tensors([tensor], [target])
    np.testing.assert_array_equal(target.data, x)
    async with await env.create_session(add()) as session:
        await session.run({"x": tensor})
    await env.copy_tensors([Tensor(x + 5)], [tensor])
    np.testing.assert_array_equal(await tensor.get_data(release=True), x + 5)


async def test_s1_3_the_context_is_opened_once_and_shared(env, contexts, x):
    (tensor,) = await on_device(env, x)
    assert len(contexts) == 1
    async with await env.create_session(add()) as session:
        await env.copy_tensors([Tensor(x)], [tensor])
        await session.run({"x": tensor})
        assert len(contexts) == 1
        assert env.device.context is contexts[0]


async def test_s1_4_the_context_is_opened_by_the_first_copy_and_no_sooner(env, contexts, x):
    assert contexts == []
    target = Tensor(np.zeros_like(x))
    await env.copy_tensors([Tensor(x)], [target])
    await env.copy_tensors([], [])
    np.testing.assert_array_equal(target.data, x)
    assert contexts == [], "copies on the host need no device"
    dispose(*await on_device(env, x))
    assert len(contexts) == 1


async def test_s1_5_the_context_is_always_number_0(env, x):
    for _ in range(2):
        (tensor,) = await on_device(env, x)
        assert env.device.id == 0
        assert env.has_context(0)
        assert not env.has_context(1)
        env.device.context.destroy()
        dispose(tensor)


async def test_s1_6_concurrent_first_copies_open_one_context_and_later_ones_do_not_wait(env, contexts, x, monkeypatch):
    tensors = []

    async def copy(number):
        tensors.append(await env.create_tensor(x + number))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(copy, number)
    assert len(contexts) == 1
    assert env._owner.current.references == 6, "five tensors and the copies, once"

    asked = noted(monkeypatch, env._owner, "acquire")
    await env.copy_tensors([Tensor(x)], [tensors[0]])
    assert asked == [], "the context is there, and need not be asked for"
    dispose(*tensors)


async def test_s1_7_copies_refer_to_the_context_from_their_first_use_to_the_end(ml, options, contexts, x):
    unused = Environment(ml, **options)
    await unused.close()
    assert contexts == []
    env = Environment(ml, **options)
    (tensor,) = await on_device(env, x)
    dispose(tensor)
    assert env._owner.current.references == 1
    async with await env.create_session(add()) as session:
        await session.run({"x": x})
    assert env.device.context is contexts[0]
    await env.close()
    assert contexts[0].lost.state == "fulfilled"


async def test_s1_8_has_context_is_true_while_a_context_is_open(env, x):
    assert not env.has_context(0)
    await on_device(env, x)
    assert env.has_context(0)
    lose(env.device.context)
    await env.device.context.lost
    assert not env.has_context(0)
    with pytest.raises(TypeError, match=r"has_context\(\): id is 'a'; it must be an integer"):
        env.has_context("a")


@pytest.mark.parametrize("data_type", ["float32", "int8", "float16", "int32"])
async def test_s1_9_batches_go_both_ways_and_from_device_to_device(env, data_type):
    arrays = [np.arange(n, dtype=data_type) for n in (1, 5, 64)]
    there = [await env.create_tensor(data_type=data_type, dims=array.shape) for array in arrays]
    further = [await env.create_tensor(data_type=data_type, dims=array.shape) for array in arrays]
    back = [Tensor(np.zeros_like(array)) for array in arrays]
    await env.copy_tensors([Tensor(array) for array in arrays], there)
    await env.copy_tensors(there, further)
    await env.drain()
    assert env.statistics().host_copies == 3
    await env.copy_tensors(further, back)
    for array, tensor in zip(arrays, back, strict=True):
        np.testing.assert_array_equal(tensor.data, array)


@pytest.mark.parametrize("source", ["cpu", "device"])
@pytest.mark.parametrize("destination", ["cpu", "device"])
@pytest.mark.parametrize("data_type", ["float32", "int8", "float16"])
async def test_s1_10_parts_are_copied(env, source, destination, data_type):
    given = np.arange(1, 13, dtype=data_type).reshape(3, 4)
    for ranges in ({}, {"source_offset": 3, "count": 5}, {"destination_offset": 7, "count": 5}, {"source_offset": 12}):
        wanted = np.zeros(12, data_type)
        first, target = ranges.get("source_offset", 0), ranges.get("destination_offset", 0)
        count = ranges.get("count", 12 - first)
        wanted[target : target + count] = given.reshape(-1)[first : first + count]
        zeros = np.zeros((2, 6), data_type)
        origin = Tensor(given) if source == "cpu" else await env.create_tensor(given)
        end = Tensor(zeros) if destination == "cpu" else await env.create_tensor(zeros)
        await end.copy_from(origin, **ranges)
        np.testing.assert_array_equal((await end.get_data()).reshape(-1), wanted, err_msg=str(ranges))
        dispose(origin, end)


@pytest.mark.parametrize("place", ["cpu", "device"])
@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"source_offset": -1}, "source_offset is -1; it must be from 0"),
        ({"source_offset": 7}, "source_offset is 7; the source has 6 elements"),
        ({"destination_offset": 1.5}, "destination_offset is 1.5; it must be an integer"),
        ({"count": 7}, "7 elements from source_offset 0 are more than the source has: 6"),
        (
            {"destination_offset": 2},
            "6 elements from destination_offset 2 are more than the destination has: 6",
        ),
        ({"source_offset": 4, "count": 3}, "3 elements from source_offset 4 are more than the source"),
    ],
)
async def test_s1_10_ranges_are_checked(env, x, place, ranges, words):
    source, end = [Tensor(array) if place == "cpu" else await env.create_tensor(array) for array in (x, x * 0)]
    with pytest.raises(TypeError, match=rf"copy_from\(\): {words}"):
        await end.copy_from(source, **ranges)
    np.testing.assert_array_equal(await end.get_data(), x * 0)


async def test_s1_10_tensors_that_do_not_fit_are_refused(env, x):
    (tensor,) = await on_device(env, x)
    with pytest.raises(TypeError, match=r"copy_from\(\): source is int32; it must be float32"):
        await tensor.copy_from(Tensor(x.astype(np.int32)))
    with pytest.raises(TypeError, match=r"copy_from\(\): source is int; it must be a Tensor"):
        await tensor.copy_from(1)


@pytest.mark.parametrize("place", ["cpu", "device"])
async def test_s1_10_parts_of_one_tensor_are_copied_if_they_do_not_overlap(env, x, place):
    tensor = Tensor(x) if place == "cpu" else await env.create_tensor(x)
    await tensor.copy_from(tensor, source_offset=4, destination_offset=1, count=2)
    np.testing.assert_array_equal((await tensor.get_data()).reshape(-1), [0, 4, 5, 3, 4, 5])
    with pytest.raises(
        TypeError, match=r"copy_from\(\): elements 1 to 4 are copied to 3 of the same tensor; the ranges"
    ):
        await tensor.copy_from(tensor, source_offset=1, destination_offset=3, count=3)


@pytest.mark.parametrize("data_type", ["float32", "int8", "float16"])
async def test_s1_11_a_tensor_is_cleared_on_its_device(env, data_type):
    array = np.arange(1, 8, dtype=data_type)
    (tensor,) = await on_device(env, array)
    host = Tensor(array.copy())
    for item in (tensor, host):
        await env.zero(item)
        np.testing.assert_array_equal(await item.get_data(), array * 0)
    await env.drain()
    assert env.statistics().host_copies == 2, "one there, one back"


async def test_s1_12_tensors_of_another_environment_are_refused(ml, env, options, x):
    async with Environment(ml, **options) as other:
        foreign, own = await other.create_tensor(x), await env.create_tensor(x)
        before = env.statistics(), other.statistics()
        for sources, destinations, words in (
            ([foreign], [Tensor(x.copy())], r"sources\[0\]"),
            ([Tensor(x), Tensor(x)], [own, foreign], r"destinations\[1\]"),
        ):
            with pytest.raises(TypeError, match=rf"copy_tensors\(\): {words} is on the device of another environment"):
                await env.copy_tensors(sources, destinations)
        with pytest.raises(TypeError, match=r"copy_from\(\): .* is on the device of another environment"):
            await own.copy_from(foreign)
        with pytest.raises(TypeError, match=r"zero\(\): .* is on the device of another environment"):
            await env.zero(foreign)
        with pytest.raises(TypeError, match=r"cast\(\): .* is on the device of another environment"):
            await env.cast(foreign, "int32")
        assert (env.statistics(), other.statistics()) == before
        dispose(foreign, own)


async def test_s1_13_closing_ends_copies_then_sessions_then_the_context(ml, options, monkeypatch, x):
    env = Environment(ml, **options)
    order = []
    session = await env.create_session(add())
    (tensor,) = await on_device(env, x)
    context = env.device.context

    def note(name):
        order.append(name)
        assert context.lost.state == "pending", name

    for name, owner, method in (
        ("copies", env, "_let_go"),
        ("session", type(session), "_release"),
        ("context", env._owner, "close"),
    ):
        noted(monkeypatch, owner, method, lambda *_, name=name: note(name))
    await env.close()
    assert order[:3] == ["copies", "session", "context"]
    assert context.lost.state == "fulfilled"
    assert live(env.statistics()) == (0, 0)
    tensor.dispose()


async def test_s1_14_releasing_a_reference_twice_is_refused(env):
    hold = await env._owner.acquire("test")
    other = await env._owner.acquire("test")
    hold.release()
    with pytest.raises(InvalidStateError, match="was released before"):
        hold.release()
    assert env.device is not None, "the other reference holds"
    other.release()
    assert env.device is None


async def test_s1_15_failures_are_raised_and_leave_nothing_behind(env, x, monkeypatch):
    (tensor,) = await on_device(env, x)
    before = live(env.statistics())
    cases = {
        "2 sources given for 1 destinations": ([Tensor(x), Tensor(x)], [tensor]),
        r"destinations\[0\] is float32 \[6\]; it must be float32 \[2, 3\], as sources\[0\]": (
            [Tensor(x)],
            [Tensor(x.reshape(-1))],
        ),
        r"destinations\[1\] and destinations\[0\] are one tensor": ([Tensor(x), Tensor(x)], [tensor, tensor]),
        r"sources\[0\] and destinations\[0\] are one tensor": ([tensor], [tensor]),
        r"sources\[0\] is ndarray; it must be a Tensor": ([x], [tensor]),
    }
    for words, (sources, destinations) in cases.items():
        with pytest.raises(TypeError, match=rf"copy_tensors\(\): {words}"):
            await env.copy_tensors(sources, destinations)

    def allocate(_descriptor):
        raise MemoryError("there is none left")

    backend = env.device.context.device.backend
    with monkeypatch.context() as patch:
        patch.setattr(backend, "allocate", allocate)
        with pytest.raises(UnknownError, match="there is none left"):
            await env.create_tensor(x)
    await env.drain()
    assert live(env.statistics()) == before
    np.testing.assert_array_equal(await tensor.get_data(release=True), x)


async def test_s1_17_tensors_are_cast_on_the_device(env):
    array = np.array([-1.5, 0, 2.75, 300], np.float32)
    (tensor,) = await on_device(env, array)
    integers = await env.cast(tensor, "int32")
    halves = await env.cast(tensor, np.float16)
    again = await env.cast(integers, "float32")
    out = await env.create_tensor(data_type="int32", dims=[4])
    assert await env.cast(tensor, "int32", out=out) is out
    await env.drain()
    assert env.statistics().host_copies == 1
    for result, wanted in ((integers, "int32"), (halves, "float16"), (again, "float32"), (out, "int32")):
        data = await result.get_data()
        assert data.dtype == wanted
        np.testing.assert_array_equal(data, array.astype(np.int32) if result is not halves else array.astype("f2"))
    with pytest.raises(TypeError, match=r"cast\(\): out is int32 \[4\]; it must be float16 \[4\]"):
        await env.cast(tensor, "float16", out=out)
    with pytest.raises(TypeError, match=r"cast\(\): data_type is 'bool'; it must be one of"):
        await env.cast(tensor, "bool")
    with pytest.raises(TypeError, match=r"cast\(\): <Tensor .* is on the host; it must be on the device"):
        await env.cast(Tensor(array), "int32")
    dispose(tensor, integers, halves, again, out)


async def test_s1_16_and_18_a_captured_run_sees_copies_before_it_and_is_independent_of_other_tensors(env, x):
    source, target = await on_device(env, x, x * 0)
    other = await env.create_session(add(7))
    async with await env.create_session(add(), enable_graph_capture=True) as session:
        await session.run({"x": source}, {"y": target})
        for number in range(5):
            passing = await env.create_tensor(x - 100)
            await env.zero(passing)
            np.testing.assert_array_equal((await other.run({"x": passing}))["y"].data, 0 * x + 7)
            passing.dispose()
            await env.copy_tensors([Tensor(x * number)], [source])
            await session.run({"x": source}, {"y": target})
            np.testing.assert_array_equal(await target.get_data(), x * number + 1)
    await other.release()


async def test_s1_19_closing_while_sessions_live_releases_them(ml, options, x):
    env = Environment(ml, **options)
    session = await env.create_session(add())
    (tensor,) = await on_device(env, x)
    await env.close()
    await env.close()
    assert env.closed
    assert session.released
    assert env.sessions == ()
    assert env.device is None
    assert live(env.statistics()) == (0, 0)
    for use in (
        session.run({"x": x}),
        tensor.get_data(),
        env.create_session(add()),
        env.create_tensor(x),
        env.copy_tensors([Tensor(x)], [Tensor(x.copy())]),
        env.zero(Tensor(x)),
    ):
        with pytest.raises(InvalidStateError, match=r"closed|released|lost"):
            await use
    tensor.dispose()


async def test_s1_19_the_environment_can_be_closed_after_the_api(options, x):
    async with open_ml() as ml:
        env = Environment(ml, **options)
        session = await env.create_session(add())
        (tensor,) = await on_device(env, x)
    assert env.device is None
    await session.release()
    tensor.dispose()
    await env.close()
    assert live(env.statistics()) == (0, 0)


async def test_a_tensor_on_the_device_has_the_label_that_it_was_given(env, x):
    tensors = [await env.create_tensor(x, label="cache")]
    tensors.append(await env.create_tensor(data_type="float32", dims=[2, 3], label="cache"))
    tensors.append(await env.create_tensor(x))
    assert [tensor.label for tensor in tensors] == ["cache", "cache", ""]
    assert Tensor(x).label == ""
    assert repr(tensors[0]).startswith("<Tensor 'cache' float32 [2, 3] ")
    assert [(item.label, item.live_buffers) for item in env.statistics().by_label] == [("cache", 2), ("", 1)]
    with pytest.raises(TypeError, match=r"create_tensor\(\): label is 3; it must be a string"):
        await env.create_tensor(x, label=3)
    tensors[0].dispose()
    with pytest.raises(InvalidStateError, match="'cache' float32"):
        await env.zero(tensors[0])
    dispose(*tensors[1:])
    await env.drain()
    assert env.statistics().by_label == ()
