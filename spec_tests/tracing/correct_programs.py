"""Programs as they are usually written, without a fault; each is given a context, and leaves nothing to be found."""

import gc

import numpy as np
import trio

from spec_tests.support.onnx_programs import program
from webnn_py import MLGraphBuilder
from webnn_py.runtime import Environment, Tensor

D = {"data_type": "float32", "shape": [8]}
ROWS = [np.arange(8, dtype=np.float32) + index for index in range(12)]


async def relu(context, *, times=1.0):
    """Build a graph of two outputs."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", **D)
    factor = builder.constant(np.full(8, times, np.float32), **D)
    return await builder.build({"y": builder.mul(builder.relu(x), factor), "z": builder.neg(x)})


async def buffer(context, **options):
    """Create a buffer that a graph's input or output can be."""
    return await context.create_buffer(**D | {"readable": True, "writable": True} | options)


class Setting:
    """A context, a graph, and buffers for it."""

    def __init__(self, ml):
        self.ml = ml

    async def open(self):
        self.context = await self.ml.create_context(backend="numpy")
        self.graph = await relu(self.context)
        self.x, self.y, self.z = [await buffer(self.context) for _ in range(3)]
        return self

    def run(self, row, x=None, y=None):
        x, y = x or self.x, y or self.y
        self.context.write_buffer(x, row)
        self.context.dispatch(self.graph, {"x": x}, {"y": y, "z": self.z})

    async def result(self, row):
        self.run(row)
        return await self.context.read_buffer(self.y)


# --- one model -----------------------------------------------------------------------------------------------------


async def many_runs_with_the_same_buffers(s):
    for row in ROWS:
        s.run(row)
        await s.context.read_buffer(s.y)


async def benchmark_of_the_same_input(s):
    s.context.write_buffer(s.x, ROWS[1])
    for _ in range(10):
        s.context.dispatch(s.graph, {"x": s.x}, {"y": s.y, "z": s.z})
    await s.context.drain()


async def two_reads_at_the_end(s):
    s.run(ROWS[1])
    await s.context.read_buffer(s.y)
    await s.context.read_buffer(s.z)


async def boxes_where_there_are_some(s):
    for row in ROWS:
        s.run(row - 6)
        scores = await s.context.read_buffer(s.y)
        if scores.max() > 4:
            await s.context.read_buffer(s.z)


# --- several buffers -----------------------------------------------------------------------------------------------


async def double_buffering(s):
    sides = [(s.x, s.y), (await buffer(s.context), await buffer(s.context))]
    pending = None
    for index, row in enumerate(ROWS):
        x, y = sides[index % 2]
        s.run(row, x, y)
        if pending is not None:
            await pending
        pending = s.context.read_buffer(y)
    await pending
    s.context.destroy()


async def a_tensor_for_each_call_that_is_destroyed(s):
    for row in ROWS:
        made = await buffer(s.context)
        s.run(row, made)
        made.destroy()


async def pages_of_a_cache_that_grows(s):
    builder = MLGraphBuilder(s.context)
    names = [f"page{index}" for index in range(10)]
    total = builder.input("token", **D)
    for name in names:
        total = builder.add(total, builder.input(name, **D))
    graph = await builder.build({"y": total})
    empty = [await buffer(s.context) for _ in names]
    pages = []
    for row in ROWS[: len(names)]:
        pages.append(await buffer(s.context))
        s.context.write_buffer(pages[-1], row)
        given = dict(zip(names, [*pages, *empty], strict=False))
        s.context.dispatch(graph, {"token": s.x, **given}, {"y": s.y})
        await s.context.read_buffer(s.y)
    s.context.destroy()


async def a_pool_that_grows_on_demand(s):
    free, made = [], 0
    for row in ROWS * 2:
        if not free:
            free.append(await buffer(s.context))
            made += 1
        one = free.pop()
        s.run(row, one)
        await s.context.read_buffer(s.y)
        free.append(one)
    assert made == 1
    s.context.destroy()


# --- states --------------------------------------------------------------------------------------------------------


async def outputs_that_stay(s):
    x, y = s.x, s.z
    s.context.write_buffer(x, ROWS[1])
    for _ in range(4):
        s.context.dispatch(s.graph, {"x": x}, {"y": s.y, "z": y})
        x, y = y, x
    await s.context.read_buffer(x)


async def decoder(s):
    builder = MLGraphBuilder(s.context)
    token, cache = builder.input("token", **D), builder.input("cache", **D)
    longer = builder.add(cache, token)
    graph = await builder.build({"logits": builder.softmax(builder.reshape(longer, [1, 8]), axis=1), "new": longer})
    logits = await buffer(s.context, shape=[1, 8])
    old, new = await buffer(s.context), await buffer(s.context)
    s.context.write_buffer(old, np.zeros(8, np.float32))
    chosen = 3
    for _ in range(12):
        s.context.write_buffer(s.x, np.eye(8, dtype=np.float32)[chosen])
        s.context.dispatch(graph, {"token": s.x, "cache": old}, {"logits": logits, "new": new})
        chosen = int((await s.context.read_buffer(logits)).argmin())
        old, new = new, old
    s.context.destroy()


async def a_state_that_is_restored(s):
    s.run(ROWS[1])
    saved = await s.context.read_buffer(s.z)
    for row in ROWS[2:5]:
        s.run(row)
        await s.context.read_buffer(s.y)
        s.context.write_buffer(s.z, saved)
        await s.context.drain()


async def what_was_read_is_changed_and_written(s):
    s.run(ROWS[1])
    s.run(await s.context.read_buffer(s.z) + 1)


# --- several graphs and contexts -----------------------------------------------------------------------------------


async def a_graph_for_each_size(s):
    graphs = {}
    for size in (2, 4, 2, 8, 4, 2):
        if size not in graphs:
            builder = MLGraphBuilder(s.context)
            graphs[size] = await builder.build(
                {"y": builder.neg(builder.input("x", data_type="float32", shape=[size]))}
            )
        x, y = await buffer(s.context, shape=[size]), await buffer(s.context, shape=[size])
        s.context.write_buffer(x, np.arange(size, dtype=np.float32))
        s.context.dispatch(graphs[size], {"x": x}, {"y": y})
        await s.context.read_buffer(y)
        x.destroy()
        y.destroy()


async def from_one_context_to_another(s):
    other = await Setting(s.ml).open()
    s.run(ROWS[1])
    other.run(await s.context.read_buffer(s.z))
    other.context.destroy()


async def shared_weights(s):
    weights = await s.context.create_constant_buffer(ROWS[3], **D)
    graphs = []
    for name in ("add", "mul", "sub"):
        builder = MLGraphBuilder(s.context)
        result = getattr(builder, name)(builder.input("x", **D), builder.constant(weights))
        graphs.append(await builder.build({"y": result}))
    for graph in graphs:
        s.context.write_buffer(s.x, ROWS[1])
        s.context.dispatch(graph, {"x": s.x}, {"y": s.y})
        await s.context.read_buffer(s.y)
    weights.destroy()


# --- errors, tasks and time ----------------------------------------------------------------------------------------


async def what_an_error_leaves_is_destroyed(s):
    for number in range(10):
        made = await buffer(s.context)
        try:
            s.run(ROWS[1], made)
            if number % 2:
                raise RuntimeError("no such file")
            await s.context.read_buffer(s.y)
        except RuntimeError:
            pass
        finally:
            made.destroy()


async def reads_that_are_cancelled(s):
    for row in ROWS[:4]:
        s.run(row)
        with trio.move_on_after(0):
            await s.context.read_buffer(s.y)


async def workers_with_tensors_of_their_own(s):
    jobs = iter(ROWS * 2)

    async def work():
        x, y = await buffer(s.context), await buffer(s.context)
        try:
            for row in jobs:
                s.run(row, x, y)
                await trio.lowlevel.checkpoint()
                await s.context.read_buffer(y)
        finally:
            x.destroy()
            y.destroy()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(work)


async def a_collection_in_between(s):
    for row in ROWS[:3]:
        await s.result(row)
        gc.collect()


# --- sessions ------------------------------------------------------------------------------------------------------

DOUBLED = program([("Add", ["x", "x"], ["y"], {})], {"x": ("float32", [8])}, {"y": ("float32", [8])})
SUM = program(
    [("Add", ["x", "state"], ["after"], {}), ("Neg", ["after"], ["y"], {})],
    {"x": ("float32", [8]), "state": ("float32", [8])},
    {"after": ("float32", [8]), "y": ("float32", [8])},
)


async def a_session(s):
    async with Environment(s.ml, backend="numpy") as environment:
        session = await environment.create_session(DOUBLED)
        for row in ROWS:
            await session.run({"x": row})


async def a_state_of_a_session_on_the_device(s):
    async with Environment(s.ml, backend="numpy") as environment:
        session = await environment.create_session(SUM, preferred_output_location={"after": "ml-tensor"})
        state = np.zeros(8, np.float32)
        for row in ROWS:
            after = (await session.run({"x": row, "state": state}))["after"]
            if isinstance(state, Tensor):
                state.dispose()
            state = after
        await state.get_data()
        state.dispose()
