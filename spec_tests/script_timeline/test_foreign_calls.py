"""Calls from outside the run of trio in which the API was opened are refused before anything changes."""

import asyncio
import re
import threading

import attrs
import pytest
import trio

from spec_tests.support.backends import ON_GPU
from spec_tests.support.buffers import filled
from spec_tests.support.cells import cells
from spec_tests.support.drawing import build_add_one
from spec_tests.support.own_statistics import own_statistics
from spec_tests.support.scene import F32, ONES
from webnn_py import MLGraphBuilder, open_ml, profiling
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.checking import check_finite
from webnn_py.core.distribution import page
from webnn_py.devices.wgpu import interop
from webnn_py.saved_graphs import SavedGraphs


@attrs.frozen
class Scene:
    """Objects that calls are made on."""

    ml: object
    context: object
    x: object
    y: object
    graph: object
    builder: MLGraphBuilder
    output: object

    @classmethod
    async def set(cls, ml, options):
        context = await ml.create_context(**options)
        x, y = [await filled(context, [1, 2]) for _ in range(2)]
        builder = MLGraphBuilder(context)
        operand = builder.input("x", **F32)
        scene = cls(ml, context, x, y, await build_add_one(context, [2]), builder, builder.add(operand, operand))
        await context.drain()
        return scene

    def look(self):
        """Return everything that a call could have changed."""
        things = (self.context, self.x, self.y, self.graph, self.builder, self.ml)
        timelines = (self.context.device_timeline, self.ml.script_timeline)
        return [repr(thing) for thing in (*things, *timelines)], own_statistics(self.context)


CALLS = {
    "create_context()": lambda scene: scene.ml.create_context(backend="numpy"),
    "create_context() with WebGPU": lambda scene: scene.ml.create_context(backend="wgpu"),
    "create_buffer()": lambda scene: scene.context.create_buffer(**F32),
    "create_constant_buffer()": lambda scene: scene.context.create_constant_buffer(ONES, **F32),
    "write_buffer()": lambda scene: scene.context.write_buffer(scene.x, 5 * ONES),
    "read_buffer()": lambda scene: scene.context.read_buffer(scene.x),
    "dispatch()": lambda scene: scene.context.dispatch(scene.graph, {"x": scene.x}, {"y": scene.y}),
    "copy_buffer()": lambda scene: copy_buffer(scene.context, scene.x, scene.y),
    "clear_buffer()": lambda scene: clear_buffer(scene.context, scene.x),
    "SavedGraphs.save()": lambda scene: SavedGraphs("graphs").save("key", scene.graph),
    "SavedGraphs.keys()": lambda scene: SavedGraphs("graphs").keys(scene.context),
    "SavedGraphs.load()": lambda scene: SavedGraphs("graphs").load(scene.context, "key"),
    "profile()": lambda scene: profiling.profile(scene.graph, {"x": ONES}),
    "check_finite()": lambda scene: check_finite({"y": scene.output}, {"x": ONES}),
    "export_to_gpu()": lambda scene: interop.export_to_gpu(scene.context, scene.x),
    "import_buffer()": lambda scene: interop.import_buffer(scene.context, None, **F32),
    "build()": lambda scene: scene.builder.build({"y": scene.output}),
    "destroy() of a context": lambda scene: scene.context.destroy(),
    "destroy() of a buffer": lambda scene: scene.x.destroy(),
    "destroy() of a graph": lambda scene: scene.graph.destroy(),
    "drain()": lambda scene: run_alone(scene.context.drain()),
    "wait_for_capacity()": lambda scene: run_alone(scene.context.wait_for_capacity()),
    "pause()": lambda scene: scene.context.device_timeline.pause(),
    "resume()": lambda scene: scene.context.device_timeline.resume(),
    "step()": lambda scene: run_alone(scene.context.device_timeline.step()),
    "wait_ended()": lambda scene: run_alone(scene.context.device_timeline.wait_ended()),
    "wait_until()": lambda scene: run_alone(scene.context.device_timeline.wait_until(lambda: False)),
    "drain() of a timeline": lambda scene: run_alone(scene.ml.script_timeline.drain()),
    "lost": lambda scene: run_alone(scene.context.lost.__await__()),
}
calls = cells("call", CALLS)


def run_alone(awaitable):
    """Begin an awaitable as any event loop would."""
    awaitable.send(None)
    pytest.fail("it was not refused")


def outside(run):
    """Run a function in a thread and return the errors that it raised."""
    raised = []

    def catch():
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - it is looked at by the test
            raised.append(error)

    thread = threading.Thread(target=catch)
    thread.start()
    thread.join()
    return raised


async def in_a_task(call):
    call()


ELSEWHERE = "than that of the open_ml() block"
PLACES = {
    "a thread": (lambda call: call, f"another thread {ELSEWHERE}; call it through trio.from_thread"),
    "another trio.run()": (lambda call: lambda: trio.run(in_a_task, call), f"another trio.run() {ELSEWHERE}"),
    "asyncio": (lambda call: lambda: asyncio.run(in_a_task(call)), "webnn_py runs on trio, and this is asyncio"),
}


@calls
@cells("place", PLACES)
async def test_a_call_from_elsewhere_is_refused_and_changes_nothing(ml, options, call, place):
    scene = await Scene.set(ml, options)
    before = scene.look()
    wrap, words = PLACES[place]

    for _ in range(20):
        (error,) = outside(wrap(lambda: CALLS[call](scene)))
        assert type(error) is RuntimeError
        method = call.partition(" ")[0]
        assert re.match(rf"{re.escape(method)}: ", str(error))
        assert words in str(error)

    assert scene.look() == before
    assert (await scene.context.read_buffer(scene.x)).tolist() == [1, 2]


@calls
def test_a_call_when_the_run_is_over_is_refused(options, call):
    async def program():
        async with open_ml() as ml:
            return await Scene.set(ml, options)

    scene = trio.run(program)
    with pytest.raises(RuntimeError, match=r"webnn_py runs on trio.*call it within trio.run\(\)"):
        CALLS[call](scene)


async def test_a_thread_calls_through_from_thread(ml, options):
    scene = await Scene.set(ml, options)
    write = lambda: scene.context.write_buffer(scene.x, 5 * ONES)  # noqa: E731 - said where it is used
    await trio.to_thread.run_sync(lambda: trio.from_thread.run_sync(write))
    assert (await scene.context.read_buffer(scene.x)).tolist() == [5, 5]


async def test_all_tasks_of_the_run_may_call(ml, options):
    scene = await Scene.set(ml, options)

    async def write(value):
        for _ in range(10):
            scene.context.write_buffer(scene.x, value * ONES)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for value in range(10):
            nursery.start_soon(write, value)
    assert (await scene.context.read_buffer(scene.x)).tolist() in [[value] * 2 for value in range(10)]


async def test_reprs_and_statistics_may_be_read_in_any_thread(ml, options):
    scene = await Scene.set(ml, options)
    looks = []
    assert outside(lambda: looks.append(scene.look())) == []
    assert looks == [scene.look()]


async def test_a_graph_may_be_drawn_in_any_thread(ml, options):
    scene = await Scene.set(ml, options)

    def draw():
        builder = MLGraphBuilder(scene.context)
        x = builder.input("x", **F32)
        drawn.append((builder, builder.add(x, x)))

    drawn = []
    assert outside(draw) == []
    ((builder, output),) = drawn
    await builder.build({"y": output})


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (asyncio.run, "this is asyncio; {} has ways to it"),
        (run_alone, "call it within trio.run(), or without trio: {}"),
    ],
    ids=["asyncio", "no event loop"],
)
def test_the_api_is_opened_on_trio_only(run, words):
    with pytest.raises(RuntimeError, match=re.escape(words.format(page("blocking")))):
        run(open_ml().__aenter__())


async def test_a_promise_that_was_rejected_from_the_start_is_awaited_on_trio_only(ml, options):
    scene = await Scene.set(ml, options)
    refused = scene.context.read_buffer(None)
    (error,) = outside(lambda: run_alone(refused.__await__()))
    assert "read_buffer(): webnn_py runs on trio" in str(error)
    with pytest.raises(TypeError):
        await refused


@pytest.mark.parametrize("backend", [ON_GPU], scope="module")
async def test_a_lent_buffer_is_returned_in_the_run_only(ml, options):
    scene = await Scene.set(ml, options)
    lent = await interop.export_to_gpu(scene.context, scene.x)
    (error,) = outside(lent.destroy)
    assert "destroy(): this is another thread" in str(error)
    read = scene.context.read_buffer(scene.x)
    lent.destroy()
    assert (await read).tolist() == [1, 2]
