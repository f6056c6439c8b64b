"""Messages name a forgotten ``await`` of a promise, and an ``open_ml()`` block that was not entered."""

import re

import numpy as np
import pytest

from spec_tests.support.backends import ON_GPU
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.scene import F32, ONES
from webnn_py import MLGraphBuilder, MLPromise, open_ml
from webnn_py.devices.wgpu import interop


async def raised_by(call):
    """Return the message of the error that a call raises, or that rejects its promise."""
    try:
        result = call()
        if isinstance(result, MLPromise):
            await result
    except (TypeError, AttributeError) as error:
        return str(error)
    return "nothing"


BUFFER_USES = {
    "write_buffer()": lambda context, promise: context.write_buffer(promise, ONES),
    "read_buffer()": lambda context, promise: context.read_buffer(promise),
    "dispatch()": lambda context, promise: context.dispatch(promise, {}, {}),
    "constant()": lambda context, promise: MLGraphBuilder(context).constant(promise),
    "constant() with a data type": lambda context, promise: MLGraphBuilder(context).constant(promise, **F32),
    "data": lambda context, promise: context.create_constant_buffer(promise, **F32),
    "MLGraphBuilder()": lambda _context, promise: MLGraphBuilder(promise),
    "an operand": lambda context, promise: MLGraphBuilder(context).relu(promise),
    "an operand of several": lambda context, promise: MLGraphBuilder(context).concat([promise], 0),
    "operands": lambda context, promise: MLGraphBuilder(context).concat(promise, 0),
    "outputs": lambda context, promise: MLGraphBuilder(context).build(promise),
    "an output": lambda context, promise: MLGraphBuilder(context).build({"y": promise}),
    "an attribute": lambda _context, promise: promise.shape,
    "a method": lambda _context, promise: promise.destroy(),
    "an item": lambda _context, promise: promise[0],
    "a call": lambda _context, promise: promise(),
    "a loop": lambda _context, promise: list(promise),
    "a length": lambda _context, promise: len(promise),
    "arithmetic": lambda _context, promise: np.add(promise, 1),
    **{
        use.__name__: lambda _context, promise, use=use: use(promise)
        for use in (np.asarray, np.argmax, np.from_dlpack, float, int)
    },
}


@pytest.mark.parametrize("use", BUFFER_USES)
async def test_a_promise_of_a_buffer_is_no_buffer(context, use):
    promise = context.create_buffer(**F32)
    words = await raised_by(lambda: BUFFER_USES[use](context, promise))
    assert "create_buffer() is a promise: forgot await?" in words
    (await promise).destroy()


async def test_promises_in_a_dispatch_are_named(context):
    graph, x = await build_add_number(context, 1, [2]), await filled(context, [1, 2])
    promise = context.create_buffer(**F32)
    hint = re.escape("create_buffer() is a promise: forgot await?")
    with pytest.raises(TypeError, match=rf"dispatch\(\): outputs\['y'\].*{hint}"):
        context.dispatch(graph, {"x": x}, {"y": promise})
    with pytest.raises(TypeError, match=rf"dispatch\(\): inputs .*{hint}"):
        context.dispatch(graph, promise, {})
    (await promise).destroy()


async def test_a_promise_of_a_graph_or_context_has_none_of_its_methods(ml, context, options):
    building, opening = build_add_number(context, 1, [2]), ml.create_context(**options)
    with pytest.raises(AttributeError, match=r"build\(\) is a promise: forgot await\?.*'input_descriptors'"):
        building.input_descriptors  # noqa: B018 - it raises
    with pytest.raises(AttributeError, match=r"create_context\(\) is a promise: forgot await\?.*'create_buffer'"):
        opening.create_buffer(**F32)
    (await building).destroy()
    (await opening).destroy()


async def test_a_promise_of_data_is_no_data(context):
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    reading = context.read_buffer(x)
    with pytest.raises(TypeError, match=r"write_buffer\(\): .*read_buffer\(\) is a promise: forgot await\?"):
        context.write_buffer(y, reading)
    with pytest.raises(AttributeError, match="It has no attribute 'tolist'"):
        reading.tolist()
    assert (await reading).tolist() == [1, 2]


def test_a_promise_that_is_incomplete_has_no_attribute_at_all():
    with pytest.raises(AttributeError):
        MLPromise.__new__(MLPromise).state  # noqa: B018 - it raises


@pytest.mark.parametrize("backend", [ON_GPU], scope="module")
async def test_a_promise_of_a_gpu_buffer_is_none(context):
    lending = interop.export_to_gpu(context, await filled(context, [1, 2]))
    with pytest.raises(TypeError, match=r"export_to_gpu\(\) is a promise: forgot await\?"):
        interop.import_buffer(context, lending, **F32)
    (await lending).destroy()


# --- the block -------------------------------------------------------------------------------------------------------


def test_a_block_that_was_not_entered_is_no_ml():
    with pytest.raises(AttributeError, match=r"'create_context': enter it by 'async with open_ml\(\) as ml'"):
        open_ml().create_context()


async def test_a_block_is_entered_by_async_with():
    with pytest.raises(RuntimeError, match=r"enter it by 'async with open_ml\(\) as ml'"), open_ml():
        pytest.fail("it was entered")
    with pytest.raises(RuntimeError, match=r"enter it by 'async with open_ml\(\) as ml'"):
        await open_ml()


async def enter(block):
    async with block:
        pytest.fail("it was entered")


async def test_a_block_is_entered_once(options):
    block = open_ml()
    async with block as ml:
        with pytest.raises(RuntimeError, match="has been entered before"):
            await enter(block)
        context = await ml.create_context(**options)
        assert (await context.read_buffer(await filled(context, [1, 2]))).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match=r"has been entered before; call open_ml\(\) again"):
        await enter(block)
