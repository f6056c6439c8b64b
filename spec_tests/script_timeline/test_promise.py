"""``MLPromise`` is settled once, and any number of tasks may await it any number of times."""

import gc
import traceback
import weakref

import numpy as np
import pytest
import trio
from trio.testing import assert_checkpoints, assert_no_checkpoints, wait_all_tasks_blocked

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.promises import pending, reject, resolve
from webnn_py import (
    InvalidStateError,
    UnknownError,
)


def settlements():
    fulfil = lambda promise: resolve(promise, "value")  # noqa: E731
    fail = lambda promise: reject(promise, UnknownError("reason"))  # noqa: E731
    return pytest.mark.parametrize("settle", [fulfil, fail], ids=["fulfilled", "rejected"])


async def outcome(promise):
    try:
        return await promise
    except UnknownError as error:
        return str(error)


# --- settled once ----------------------------------------------------------------------------------------------------


@settlements()
async def test_the_first_settlement_is_the_only_one(settle):
    promise = pending()
    assert settle(promise) is True
    state, result = promise.state, await outcome(promise)
    assert resolve(promise, "another value") is False
    assert reject(promise, UnknownError("another reason")) is False
    assert (promise.state, await outcome(promise)) == (state, result)


async def test_a_promise_acts_without_being_awaited(context):
    buffer, out = await filled(context, [1, 2]), np.zeros(2, np.float32)
    with assert_no_checkpoints():
        read = context.read_buffer(buffer, out=out)
        creation = context.create_buffer(data_type="int8", shape=[5])
        building = build_add_number(context, 1, [2])
    await context.drain()
    assert [promise.state for promise in (read, creation, building)] == ["fulfilled"] * 3
    np.testing.assert_array_equal(out, [1, 2])


@settlements()
async def test_an_await_is_a_checkpoint(settle, autojump_clock):
    promise = pending()
    async with trio.open_nursery() as nursery:

        async def settle_later():
            await trio.sleep(1)
            settle(promise)

        nursery.start_soon(settle_later)
        for _ in range(2):  # pending, then settled
            with assert_checkpoints():
                await outcome(promise)


# --- many who wait ---------------------------------------------------------------------------------------------------


@settlements()
async def test_many_tasks_and_many_awaits_get_the_same_answer(settle):
    promise, answers = pending(), []

    async def wait():
        answers.append(await outcome(promise))
        answers.append(await outcome(promise))

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert answers == []
        settle(promise)
    answers.append(await outcome(promise))
    assert len(answers) == 201
    assert len(set(answers)) == 1


async def test_every_await_gets_the_same_object(context):
    buffer = await filled(context, [1, 2])
    promise = context.read_buffer(buffer)
    assert await promise is await promise


async def test_an_await_in_a_cancelled_scope_is_cancelled_even_if_the_promise_is_settled(context):
    promise = context.read_buffer(await filled(context, [1, 2]))
    await promise
    with trio.CancelScope() as scope:
        scope.cancel()
        await promise
    assert scope.cancelled_caught


async def test_a_promise_settled_in_the_moment_of_a_cancellation_still_answers_the_others():
    promise, answers = pending(), []

    async def wait(scope):
        with scope:
            answers.append(await promise)

    scopes = [trio.CancelScope(), trio.CancelScope()]
    async with trio.open_nursery() as nursery:
        for scope in scopes:
            nursery.start_soon(wait, scope)
        await wait_all_tasks_blocked()
        scopes[0].cancel()
        resolve(promise, "value")
    assert answers == ["value"]


async def test_a_settled_promise_holds_no_reference_to_its_waiters():
    promise = pending()

    class Witness:
        pass

    witness = Witness()
    alive = weakref.ref(witness)

    async def wait(_witness):
        await promise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, witness)
        await wait_all_tasks_blocked()
        resolve(promise, None)
    del witness
    gc.collect()
    assert alive() is None
    assert promise.state == "fulfilled"


# --- rejections ------------------------------------------------------------------------------------------------------


async def test_each_await_raises_an_exception_of_its_own():
    promise, cause = pending(), ValueError("cause")
    rejection = UnknownError("reason")
    rejection.__cause__ = cause
    reject(promise, rejection)
    caught = []

    async def wait():
        with pytest.raises(UnknownError, match="reason") as info:
            await promise
        caught.append(info.value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        nursery.start_soon(wait)
    await wait()

    assert len({id(error) for error in (*caught, rejection)}) == 4
    assert {type(error) for error in caught} == {UnknownError}
    assert all(error.__cause__ is cause for error in caught)
    for error in caught:
        frames = traceback.extract_tb(error.__traceback__)
        assert [frame.name for frame in frames].count("wait") == 1, "the tracebacks of two tasks are mixed"
    assert rejection.__traceback__ is None, "what the promise holds must not grow with every await"
    caught[0].add_note("mine")
    assert not hasattr(caught[1], "__notes__")


async def test_a_rejection_of_a_destroyed_buffer_keeps_its_type_in_every_copy(context):
    buffer = await filled(context, [1, 2])
    buffer.destroy()
    promise = context.read_buffer(buffer)
    with pytest.raises(InvalidStateError):
        await promise
    with pytest.raises(TypeError):
        await promise


# --- what a promise and the other handles are not --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:UnknownError that was never awaited:RuntimeWarning")
@settlements()
def test_a_promise_is_neither_true_nor_false(settle):
    promise = pending()
    with pytest.raises(TypeError, match="neither true nor false; await it"):
        bool(promise)
    settle(promise)
    with pytest.raises(TypeError, match="neither true nor false; await it"):
        bool(promise)


async def test_handles_are_compared_by_identity(context):
    first, second = [await zeroed(context, [2]) for _ in range(2)]
    assert first != second
    assert len({first, second, context, context.lost}) == 4
