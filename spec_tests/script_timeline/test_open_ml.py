"""The block of ``open_ml()`` owns the timelines and releases everything, however it is left."""

import gc
import sys
import threading

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.backends import BACKENDS
from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number
from spec_tests.support.fake_device import FakeDevice
from spec_tests.support.releases import assert_ended
from spec_tests.support.scene import ONES, assert_refused
from spec_tests.support.watched_device import context_on, quiet
from webnn_py import (
    DestroyedBufferError,
    InvalidStateError,
    MLGraphBuilder,
    SecurityError,
    open_ml,
)


async def furnish(ml, options):
    """Create a context with a buffer, a constant buffer, and a graph that holds constants and intermediates."""
    context = await ml.create_context(**options)
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    graph = await build_add_buffer(context, await constant(context, [1, 1]))
    context.dispatch(graph, {"x": x}, {"y": y})
    assert (await context.read_buffer(y)).tolist() == [2, 3]
    assert context.statistics().live_bytes > 0
    return context, (x, y, graph)


# --- leaving ---------------------------------------------------------------------------------------------------------


async def test_leaving_destroys_every_context(options):
    async with open_ml() as ml:
        furnished = [await furnish(ml, options) for _ in range(3)]
    for context, (x, _, graph) in furnished:
        assert_ended(context)
        assert (await context.lost).message == "the open_ml() block has been left"
        with pytest.raises(DestroyedBufferError, match="block has been left"):
            context.write_buffer(x, ONES)
        with pytest.raises(InvalidStateError, match="block has been left"):
            context.dispatch(graph, {}, {})
    assert ml.script_timeline.ended


async def test_leaving_after_everything_was_destroyed_does_nothing_more(options):
    async with open_ml() as ml:
        context, things = await furnish(ml, options)
        for thing in things:
            thing.destroy()
        context.destroy()
    assert_ended(context)
    assert "destroy()" in (await context.lost).message


@pytest.mark.parametrize(
    "error",
    [
        LookupError("own"),
        ExceptionGroup("own group", [LookupError("own")]),
        KeyboardInterrupt("own"),
        SystemExit("own"),
    ],
    ids=["an exception", "a group", "an interrupt", "an exit"],
)
@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
async def test_an_exception_leaves_the_block_unchanged(error, options, paused):
    context = caught = None
    try:
        async with open_ml() as ml:
            context, _things = await furnish(ml, options)
            if paused:
                context.device_timeline.pause()
                ml.script_timeline.pause()
            raise error
    except BaseException as out:  # noqa: BLE001 - whatever comes out is looked at
        caught = out
    assert caught is error
    assert caught.__cause__ is None
    assert_ended(context)


async def test_a_cancellation_leaves_the_block_and_still_releases_everything(options):
    with trio.CancelScope() as scope:
        async with open_ml() as ml:
            context, _things = await furnish(ml, options)
            promise = context.create_buffer(data_type="int8", shape=[1])
            await context.drain()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert promise.state == "fulfilled"
    assert_ended(context)


async def test_a_cancellation_from_within_is_caught_by_its_own_scope_alone(options):
    outer_went_on = False
    with trio.CancelScope() as outer:
        async with open_ml() as ml:
            context, _things = await furnish(ml, options)
            with trio.CancelScope() as inner:
                inner.cancel()
                await context.read_buffer(await zeroed(context, [2]))
        outer_went_on = True
    assert inner.cancelled_caught
    assert not outer.cancelled_caught
    assert outer_went_on
    assert_ended(context)


@pytest.mark.parametrize("paused", ["neither", "device", "script", "both"])
async def test_leaving_settles_every_promise(paused, options):
    async with open_ml() as ml:
        context, (x, *_things) = await furnish(ml, options)
        if paused in {"device", "both"}:
            context.device_timeline.pause()
        if paused in {"script", "both"}:
            ml.script_timeline.pause()
        promises = {
            "read": context.read_buffer(x),
            "creation": context.create_buffer(data_type="int8", shape=[1]),
            "constant": context.create_constant_buffer(ONES, data_type="float32", shape=[2]),
            "build": build_add_number(context, 1, [2]),
        }
        if paused == "script":
            await quiet(context)
        assert {promise.state for promise in promises.values()} == {"pending"}

    settled = {name: promise.state for name, promise in promises.items()}
    done = "fulfilled" if paused == "script" else "rejected"
    assert settled == {"read": "rejected", "creation": done, "constant": done, "build": done}
    for name in ("creation", "constant", "build") if done == "rejected" else ("read",):
        with pytest.raises(InvalidStateError, match="context is lost: the open_ml"):
            await promises[name]
    assert_ended(context)


async def test_the_promise_of_a_context_settles_when_the_block_is_left(backend):
    async with open_ml() as ml:
        promise = ml.create_context(backend=backend)
        assert promise.state == "pending"
    if backend == "numpy":  # was there at once, and is lost with the block
        assert_ended(await promise)
    else:  # a GPU or an engine is looked for in parallel, and was not found in time
        with pytest.raises(InvalidStateError, match=r"create_context\(\): the open_ml\(\) block has been left"):
            await promise


@pytest.mark.parametrize("moment", ["in the block", "while the block is left"])
async def test_a_failed_release_is_raised_by_the_block(autojump_clock, options, moment):
    device = FakeDevice()
    device.failing["free"] = error = OSError("cannot free")

    async def leave():
        async with open_ml() as ml:
            other = await furnish(ml, options)
            context = await context_on(ml, device)
            doomed, bystander = await zeroed(context, [2]), await zeroed(context, [2])
            if moment == "in the block":
                doomed.destroy()
                await trio.sleep(3600)
                raise AssertionError("the block must be cancelled")
            return other, doomed, bystander

    with pytest.raises(ExceptionGroup) as caught:
        await leave()
    assert caught.value.exceptions == (error,)


async def test_blocks_nest_and_do_not_touch_each_other(options):
    async with open_ml() as outer:
        outer_context, (x, y, graph) = await furnish(outer, options)
        async with open_ml() as inner:
            inner_context, _things = await furnish(inner, options)
            with pytest.raises(TypeError, match="another context"):
                await inner_context.read_buffer(x)
        assert_ended(inner_context)
        outer_context.dispatch(graph, {"x": x}, {"y": y})
        np.testing.assert_array_equal(await outer_context.read_buffer(y), [2, 3])
    assert_ended(outer_context)


async def test_a_promise_may_be_awaited_after_its_block(options):
    async with open_ml() as ml:
        context, (x, *_things) = await furnish(ml, options)
        read = context.read_buffer(x)
        await context.drain()
        context.device_timeline.pause()
        late = context.read_buffer(x)
    np.testing.assert_array_equal(await read, [1, 2])
    with pytest.raises(InvalidStateError, match="block has been left"):
        await late


async def test_no_context_is_made_after_the_block_has_been_left():
    async with open_ml() as ml:
        pass
    await assert_refused(
        "create_context", lambda: ml.create_context(backend="numpy"), InvalidStateError, r"create_context\(\).*left"
    )


async def test_no_context_is_made_while_the_block_is_being_left(autojump_clock):
    device, seen = FakeDevice(), []

    async def try_meanwhile(ml):
        await context.lost
        seen.append(ml.create_context(backend="numpy"))
        ready.set()

    async with trio.open_nursery() as nursery, open_ml() as ml:
        context = await context_on(ml, device)
        buffer = await zeroed(context, [2])
        device.waiting["write"] = ready = trio.Event()
        context.write_buffer(buffer, ONES)
        nursery.start_soon(try_meanwhile, ml)
        await wait_all_tasks_blocked()
    with pytest.raises(InvalidStateError, match=r"create_context\(\).*has been left"):
        await seen[0]


async def test_no_thread_and_no_task_is_left(options):
    statistics = trio.lowlevel.current_statistics
    tasks, threads = statistics().tasks_living, {thread.ident for thread in threading.enumerate()}
    async with open_ml() as ml:
        await furnish(ml, options)
        await furnish(ml, options)
        assert statistics().tasks_living > tasks
    assert statistics().tasks_living == tasks
    # Trio keeps threads for a while, and so does the tests' GPU device; one ends half a second after the last device.
    kept = ("Trio thread", "webnn-pipelines", "webnn-loss")
    assert {t.name for t in threading.enumerate() if t.ident not in threads and not t.name.startswith(kept)} == set()


async def test_a_block_left_a_hundred_times_leaves_nothing(options):
    for _ in range(100):
        async with open_ml() as ml:
            context, _things = await furnish(ml, options)
        assert_ended(context)
    gc.collect()


@pytest.mark.parametrize("given", ["subgraph", {"sub-graph"}, [1], 5])
def test_only_known_proposals_can_be_asked_for(given):
    with pytest.raises(TypeError, match=r"^open_ml\(\): experimental"):
        open_ml(experimental=given)


# --- options of create_context() -------------------------------------------------------------------------------------

BAD_OPTIONS = {
    "power_preference, a word": ({"power_preference": "max"}, "power_preference is 'max'; it must be one of default,"),
    "power_preference, None": ({"power_preference": None}, "power_preference is None"),
    "power_preference, no word": ({"power_preference": ["default"]}, r"power_preference is \['default'\]"),
    "accelerated, a number": ({"accelerated": 1}, "accelerated is 1; it must be True or False"),
    "accelerated, None": ({"accelerated": None}, "accelerated is None; it must be True or False"),
    "a GPU device for numpy": (
        {"gpu_device": object(), "backend": "numpy"},
        "gpu_device is no option of the device 'numpy'; 'wgpu' has it",
    ),
    "backend, a word": (
        {"backend": "cuda"},
        "backend is 'cuda'; it must be one of numpy, wgpu, onnxruntime, reference, or None",
    ),
    "backend, a number": ({"backend": 1}, "backend is 1"),
    "backend, nearly one": ({"backend": "numpyy"}, r"backend is 'numpyy'; .*; did you mean 'numpy'\?"),
    "nearly an option": ({"backend": "numpy", "thread": 2}, r"thread is no option .*; did you mean 'threads'\?"),
    "nearly an option of all": ({"power_preferance": "low-power"}, r".*did you mean 'power_preference'\?"),
    "float16_accumulation, a word": ({"float16_accumulation": "yes"}, "float16_accumulation is 'yes'"),
    "max_queued_bytes, negative": ({"max_queued_bytes": -1}, "max_queued_bytes is -1; it must be from 0"),
    "max_queued_bytes, a float": ({"max_queued_bytes": 1e6}, "max_queued_bytes is 1000000.0; it must be an integer"),
    "max_queued_bytes, a bool": ({"max_queued_bytes": True}, "max_queued_bytes is True; it must be an integer"),
    "max_queued_bytes, a word": ({"max_queued_bytes": "many"}, "max_queued_bytes is 'many'; it must be"),
    "max_queued_bytes, too many": ({"max_queued_bytes": 2**32}, "max_queued_bytes is 4294967296; it must be"),
}


@pytest.mark.parametrize("what", BAD_OPTIONS)
async def test_an_option_is_refused(ml, what):
    options, words = BAD_OPTIONS[what]
    await assert_refused(
        "create_context", lambda: ml.create_context(**options), TypeError, rf"^create_context\(\): {words}"
    )
    assert await ml.create_context(backend="numpy")


@pytest.mark.parametrize("power_preference", ["default", "high-performance", "low-power"])
@pytest.mark.parametrize("accelerated", [True, False])
async def test_hints_never_fail_and_accelerated_is_the_given_value(ml, power_preference, accelerated):
    context = await ml.create_context(power_preference=power_preference, accelerated=accelerated, backend="numpy")
    assert context.accelerated is accelerated
    assert context.backend.name == "numpy"


async def test_the_backend_names_the_device_that_the_context_runs_on(context, backend):
    runs_on = context.backend
    assert runs_on.name == backend
    assert runs_on.driver == f"numpy {np.__version__}" if backend == "numpy" else runs_on.driver
    assert runs_on.adapter
    assert str(runs_on) == f"{backend} ({runs_on.adapter}, {runs_on.driver})"
    assert str(runs_on) in repr(context)


async def test_without_an_adapter_and_an_engine_contexts_run_on_numpy(ml, no_adapters, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for options in ({}, {"accelerated": False}):
        assert (await ml.create_context(**options)).backend.name == "numpy"


@pytest.mark.skipif("onnxruntime" not in BACKENDS, reason="onnxruntime is not installed")
async def test_without_an_adapter_contexts_run_on_the_engine_that_is_installed(ml, no_adapters):
    for options in ({}, {"accelerated": False}, {"threads": 1}):
        assert (await ml.create_context(**options)).backend.name == "onnxruntime"


async def test_each_context_is_another(ml, options):
    first, second = await ml.create_context(**options), await ml.create_context(**options)
    assert first is not second
    assert first.device_timeline is not second.device_timeline
    assert first.lost is first.lost
    assert first.lost is not second.lost


async def test_the_policy_is_called_for_each_context_and_builder_alone(options):
    asked = []
    async with open_ml(policy=lambda: asked.append(None) is None) as ml:
        context, _things = await furnish(ml, options)
        assert len(asked) == 2, "once for the context, once for the builder"
        await zeroed(context, [2])
        assert len(asked) == 2


@pytest.mark.parametrize("policy", [None, 5, "allow", [True]])
def test_a_policy_that_cannot_be_asked_is_refused(policy):
    with pytest.raises(TypeError, match=r"^open_ml\(\): policy is .*; it must be a function of no arguments"):
        open_ml(policy=policy)


async def test_a_policy_that_fails_denies(options):
    fails = False

    def policy():
        if fails:
            raise LookupError("no rules for this user")
        return True

    async with open_ml(policy=policy) as ml:
        context = await ml.create_context(**options)
        fails = True
        words = r"\(\): the policy failed: no rules for this user"
        refused = ml.create_context(**options)
        with pytest.raises(SecurityError, match=rf"^create_context{words}") as caught:
            await refused
        assert isinstance(caught.value.__cause__, LookupError)
        with pytest.raises(SecurityError, match=rf"^MLGraphBuilder{words}") as caught:
            MLGraphBuilder(context)
        assert isinstance(caught.value.__cause__, LookupError)
        fails = False
        MLGraphBuilder(await ml.create_context(**options))
