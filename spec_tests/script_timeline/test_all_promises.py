"""``MLPromise.all()`` awaits several promises in one checkpoint."""

import gc
import warnings
import weakref

import numpy as np
import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from spec_tests.support.buffers import filled
from spec_tests.support.promises import pending, reject, resolve
from spec_tests.support.turns import counted_turns
from webnn_py import InvalidStateError, MLPromise, UnknownError


async def test_answers_come_in_the_order_of_the_promises(context):
    buffers = [await filled(context, [number]) for number in range(3)]
    reads = [context.read_buffer(buffer) for buffer in buffers]
    with assert_checkpoints():
        answers = await MLPromise.all([*reversed(reads), reads[2]])
    assert [answer.item() for answer in answers] == [2, 1, 0, 2]


async def test_all_reads_of_a_processor_take_one_turn(numpy_context):
    buffers = [await filled(numpy_context, [number]) for number in range(5)]
    await numpy_context.drain()
    with counted_turns() as turns:
        await MLPromise.all([numpy_context.read_buffer(buffer) for buffer in buffers])
    assert turns.count == 1


async def test_all_of_no_promises_is_a_checkpoint():
    with assert_checkpoints():
        assert await MLPromise.all([]) == []


async def test_any_iterable_of_promises_is_accepted():
    promises = [pending() for _ in range(2)]
    for number, promise in enumerate(promises):
        resolve(promise, number)
    assert await MLPromise.all(promise for promise in promises) == [0, 1]


async def test_all_waits_for_the_last_promise():
    promises, answers = [pending() for _ in range(3)], []
    resolve(promises[1], "b")

    async def wait():
        answers.append(await MLPromise.all(promises))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for place, answer in ((2, "c"), (0, "a")):
            await wait_all_tasks_blocked()
            assert answers == []
            resolve(promises[place], answer)
    assert answers == [["a", "b", "c"]]


async def test_a_rejection_is_raised_at_once(context):
    first, second = await filled(context, [1]), await filled(context, [2])
    context.device_timeline.pause()
    reads = [context.read_buffer(first), context.read_buffer(second)]
    async with trio.open_nursery() as nursery:

        async def wait():
            with pytest.raises(InvalidStateError, match=r"destroy\(\) was called"):
                await MLPromise.all(reads)

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        second.destroy()
    assert [read.state for read in reads] == ["pending", "rejected"]
    context.device_timeline.resume()
    assert (await reads[0]).item() == 1


async def test_an_earlier_rejection_is_raised_at_once(context):
    buffer = await filled(context, [1])
    context.device_timeline.pause()
    reads = [context.read_buffer(buffer), context.read_buffer(buffer, out=b"")]
    with assert_checkpoints(), pytest.raises(TypeError, match="read-only"):
        await MLPromise.all(reads)
    assert reads[0].state == "pending"
    context.device_timeline.resume()


async def test_the_first_of_several_rejections_is_raised_as_a_copy():
    promises = [pending() for _ in range(2)]
    errors = [UnknownError(name) for name in ("first", "second")]
    for promise, error in zip(promises, errors, strict=True):
        reject(promise, error)
    with pytest.raises(UnknownError, match="first") as raised:
        await MLPromise.all(promises)
    assert raised.value is not errors[0]


async def test_promises_that_fail_before_and_after_count_as_awaited():
    promises = [pending("read_buffer()") for _ in range(2)]
    reject(promises[0], UnknownError("first"))
    with warnings.catch_warnings(record=True, action="always") as caught:
        with pytest.raises(UnknownError, match="first"):
            await MLPromise.all(promises)
        reject(promises.pop(), UnknownError("second"))
        promises.clear()
        gc.collect()
    assert caught == []


async def test_promises_of_another_run_of_trio_are_refused(context):
    read = context.read_buffer(await filled(context, [1]))
    words = r"read_buffer\(\): this is another trio\.run\(\) than that of the open_ml\(\) block"
    with pytest.raises(RuntimeError, match=words):
        await trio.to_thread.run_sync(trio.run, MLPromise.all, [read])
    assert (await read).item() == 1


async def test_cancelling_ends_the_wait_alone():
    promises = [pending("read_buffer()") for _ in range(3)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(MLPromise.all, promises)
        await wait_all_tasks_blocked()
        resolve(promises[0], 0)
        nursery.cancel_scope.cancel()
    for number in (1, 2):
        resolve(promises[number], number)
    assert await MLPromise.all(promises) == [0, 1, 2]


async def test_a_cancelled_wait_is_forgotten_by_the_promises():
    kept, other, witness = pending(), pending(), type("Witness", (), {})()
    alive = weakref.ref(witness)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(MLPromise.all, [kept, other])
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    resolve(other, witness)
    del other, witness, nursery
    gc.collect()
    assert alive() is None
    assert kept.state == "pending"


@pytest.mark.parametrize("given", [[3], ["ab"], [np.zeros(3)]], ids=str)
async def test_all_refuses_other_values_than_promises(given):
    with pytest.raises(TypeError, match=r"MLPromise\.all\(\): promises\[1\] is .*; it must be an MLPromise"):
        await MLPromise.all([pending(), *given])
