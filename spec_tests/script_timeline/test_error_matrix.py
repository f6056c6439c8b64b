"""What each method does under each wrong condition: the error's type, how it comes, and that nothing else breaks.

Promise-returning methods reject, at the call; the others raise. After every refusal a correct call works.
"""

from typing import NamedTuple

import numpy as np
import pytest

from spec_tests.support.cells import cells
from spec_tests.support.scene import ONES, assert_refused, assert_works, set_scene
from spec_tests.support.watched_device import REASONS, WatchedDevice
from webnn_py import (
    DestroyedBufferError,
    InvalidStateError,
    MLGraphBuilder,
    NotSupportedError,
    SecurityError,
    open_ml,
)

F32 = {"data_type": "float32", "shape": [2]}


class Cell(NamedTuple):
    method: str
    what: str
    call: object
    error: type
    words: str


def refusals(*rows, each_alone=False):
    """Return a decorator that runs a test for each of these calls, as one test or each as a test of its own."""
    given = [Cell(*row) for row in rows]
    decorate = pytest.mark.parametrize if each_alone else cells
    return decorate("cell", given, ids=[f"{cell.method}, {cell.what}" for cell in given])


@pytest.fixture
async def scene(ml, options):
    return await set_scene(ml, options)


async def assert_refused_and_harmless(scene, cell):
    await assert_refused(cell.method, lambda: cell.call(scene), cell.error, cell.words)
    assert scene.context.statistics().queued_operations == 0, "a refused call must enqueue nothing"
    await assert_works(cell.method, scene)


@refusals(
    ("create_context", "at all", lambda s: s.ml.create_context(), SecurityError, r"create_context\(\).*policy"),
    ("MLGraphBuilder", "at all", lambda s: MLGraphBuilder(s.context), SecurityError, r"MLGraphBuilder\(\).*policy"),
)
async def test_a_policy_that_denies(cell, options):
    allowed = True
    async with open_ml(policy=lambda: allowed) as ml:
        scene = await set_scene(ml, options)
        allowed = False
        await assert_refused(cell.method, lambda: cell.call(scene), cell.error, cell.words)
        allowed = True
        await assert_works(cell.method, scene)


@refusals(
    (
        "create_context",
        "wgpu",
        lambda s: s.ml.create_context(backend="wgpu"),
        NotSupportedError,
        r"create_context.*WebGPU",
    ),
    ("create_context", "a device", lambda s: s.ml.create_context(gpu_device=1), TypeError, r"gpu_device is 1"),
)
async def test_a_kind_of_context_that_is_not_there(ml, options, cell, no_adapters):
    scene = await set_scene(ml, options)
    with pytest.raises(cell.error, match=cell.words):  # looked for in parallel, so not at the call
        await cell.call(scene)
    await assert_works(cell.method, scene)


LOST = [
    ("create_buffer", "at all", lambda s: s.context.create_buffer(**F32), InvalidStateError),
    (
        "create_constant_buffer",
        "at all",
        lambda s: s.context.create_constant_buffer(ONES, **F32),
        InvalidStateError,
    ),
    ("read_buffer", "a fresh array", lambda s: s.context.read_buffer(s.x), DestroyedBufferError),
    ("read_buffer", "into out", lambda s: s.context.read_buffer(s.x, out=np.ones_like(ONES)), DestroyedBufferError),
    ("write_buffer", "at all", lambda s: s.context.write_buffer(s.x, ONES), DestroyedBufferError),
    ("dispatch", "at all", lambda s: s.dispatch(), InvalidStateError),
    ("build", "at all", lambda s: s.builder.build({"y": s.output}), InvalidStateError),
    ("add", "at all", lambda s: s.builder.add(s.input, s.output), InvalidStateError),
    ("input", "at all", lambda s: s.builder.input("z", **F32), InvalidStateError),
    ("constant", "an array", lambda s: s.builder.constant(ONES), InvalidStateError),
    ("constant", "bytes", lambda s: s.builder.constant(bytes(8), **F32), InvalidStateError),
    ("constant", "a number", lambda s: s.builder.constant(1, data_type="float32"), InvalidStateError),
    ("constant", "a buffer", lambda s: s.builder.constant(s.constant), DestroyedBufferError),
    ("MLGraphBuilder", "at all", lambda s: MLGraphBuilder(s.context), InvalidStateError),
]


@refusals(*[(*row, rf"{row[0]}\(\).*context is lost: destroy\(\)") for row in LOST])
async def test_a_context_that_was_destroyed(ml, options, cell):
    scene = await set_scene(ml, options)
    scene.context.destroy()
    await scene.context.drain()
    await assert_refused_and_harmless_elsewhere(scene, cell)


# Each is a test of its own, at whose end the GPU device that it has lost is closed.
@refusals(*[(*row, rf"{row[0]}\(\).*context is lost: ({'|'.join(REASONS.values())})") for row in LOST], each_alone=True)
async def test_a_context_whose_device_is_gone(ml, backend, elsewhere, cell):
    scene = await set_scene(ml, {"backend": backend}, elsewhere)
    await WatchedDevice(scene.context).lose()
    await scene.context.lost
    await scene.context.drain()
    await assert_refused_and_harmless_elsewhere(scene, cell)


async def assert_refused_and_harmless_elsewhere(scene, cell):
    await assert_refused(cell.method, lambda: cell.call(scene), cell.error, cell.words)
    assert scene.context.statistics().queued_operations == 0, "a refused call must enqueue nothing"
    scene.other.write_buffer(scene.foreign, 5 * ONES)
    np.testing.assert_array_equal(await scene.other.read_buffer(scene.foreign), [5, 5])


@refusals(
    ("read_buffer", "a buffer", lambda s: s.context.read_buffer(s.foreign), TypeError, "MLBuffer.*another context"),
    ("write_buffer", "a buffer", lambda s: s.context.write_buffer(s.foreign, ONES), TypeError, "another context"),
    ("dispatch", "a graph", lambda s: s.dispatch(graph=s.foreign_graph), TypeError, "graph belongs to another context"),
    ("dispatch", "an input", lambda s: s.dispatch(inputs={"x": s.foreign}), TypeError, "another context"),
    ("dispatch", "an output", lambda s: s.dispatch(outputs={"y": s.foreign}), TypeError, "another context"),
    ("build", "an operand", lambda s: s.builder.build({"y": s.foreign_output}), TypeError, r"outputs\['y'\].*builder"),
    (
        "add",
        "an operand",
        lambda s: s.builder.add(s.input, s.foreign_output),
        TypeError,
        "b belongs to another builder",
    ),
    ("constant", "a buffer", lambda s: s.builder.constant(s.foreign_constant), TypeError, "another context"),
)
async def test_an_object_of_another_context_or_builder(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


@refusals(
    ("read_buffer", "a buffer", lambda s: s.context.read_buffer(s.destroyed), DestroyedBufferError, "destroyed"),
    ("write_buffer", "it", lambda s: s.context.write_buffer(s.destroyed, ONES), DestroyedBufferError, "destroyed"),
    ("dispatch", "an input", lambda s: s.dispatch(inputs={"x": s.destroyed}), DestroyedBufferError, "destroyed"),
    ("dispatch", "an output", lambda s: s.dispatch(outputs={"y": s.destroyed}), DestroyedBufferError, "destroyed"),
    ("constant", "it", lambda s: s.builder.constant(s.destroyed_constant), DestroyedBufferError, "destroyed"),
)
async def test_a_destroyed_buffer(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


async def test_a_destroyed_constant_buffer_is_refused_by_build_and_leaves_the_builder_usable(scene):
    y = scene.builder.add(scene.input, scene.builder.constant(scene.constant))
    scene.constant.destroy()
    await assert_refused(
        "build", lambda: scene.builder.build({"y": y}), DestroyedBufferError, r"build\(\).*constant.*destroyed"
    )
    await assert_works("build", scene)


async def test_a_destroyed_constant_buffer_that_no_output_needs_is_not_missed(scene):
    scene.builder.add(scene.input, scene.builder.constant(scene.constant))
    scene.constant.destroy()
    await assert_works("build", scene)


@refusals(("dispatch", "it", lambda s: s.dispatch(graph=s.destroyed_graph), InvalidStateError, "graph is destroyed"))
async def test_a_destroyed_graph(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


@refusals(
    ("read_buffer", "it", lambda s: s.context.read_buffer(s.flagless), TypeError, "MLBuffer.*not readable"),
    ("write_buffer", "it", lambda s: s.context.write_buffer(s.flagless, ONES), TypeError, "MLBuffer.*not writable"),
)
async def test_a_missing_flag(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


async def test_a_dispatch_asks_for_no_flags(scene):
    scene.dispatch(outputs={"y": scene.flagless})
    scene.dispatch(inputs={"x": scene.flagless})
    np.testing.assert_array_equal(await scene.context.read_buffer(scene.y), [3, 4])


@refusals(
    ("read_buffer", "it", lambda s: s.context.read_buffer(s.constant), TypeError, "constant.*not readable"),
    ("write_buffer", "it", lambda s: s.context.write_buffer(s.constant, ONES), TypeError, "constant.*not writable"),
    ("dispatch", "an input", lambda s: s.dispatch(inputs={"x": s.constant}), TypeError, r"inputs\['x'\].*constant"),
    ("dispatch", "an output", lambda s: s.dispatch(outputs={"y": s.constant}), TypeError, r"outputs\['y'\].*constant"),
)
async def test_a_constant_buffer_where_another_is_wanted(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


async def test_a_constant_buffer_makes_a_constant(scene):
    ones = scene.builder.constant(scene.constant)
    scene.graph = await scene.builder.build({"y": scene.builder.add(scene.input, ones)})
    await assert_works("dispatch", scene)


@refusals(("constant", "it", lambda s: s.builder.constant(s.x), TypeError, "not constant; create_constant_buffer"))
async def test_a_buffer_that_is_not_constant_where_one_is_wanted(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


@pytest.mark.parametrize("method", ["read_buffer", "write_buffer", "dispatch"])
async def test_a_buffer_that_is_not_constant(scene, method):
    await assert_works(method, scene)


@refusals(
    ("dispatch", "inputs", lambda s: s.dispatch(inputs={"x": s.x, "z": s.x}), TypeError, "given twice"),
    ("dispatch", "outputs", lambda s: s.dispatch(outputs={"y": s.y, "z": s.y}), TypeError, "given twice"),
    ("dispatch", "an input and an output", lambda s: s.dispatch(outputs={"y": s.x}), TypeError, "given twice"),
)
async def test_a_buffer_given_twice(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


@refusals(
    ("build", "again", lambda s: s.builder.build({"y": s.output}), InvalidStateError, "has built"),
    ("add", "an operator", lambda s: s.builder.add(s.input, s.output), InvalidStateError, "has built"),
    ("input", "an input", lambda s: s.builder.input("z", **F32), InvalidStateError, "has built"),
    ("constant", "an array", lambda s: s.builder.constant(ONES), InvalidStateError, "has built"),
    ("constant", "bytes", lambda s: s.builder.constant(bytes(8), **F32), InvalidStateError, "has built"),
    ("constant", "a number", lambda s: s.builder.constant(1, data_type="int8"), InvalidStateError, "has built"),
    ("constant", "a buffer", lambda s: s.builder.constant(s.constant), InvalidStateError, "has built"),
)
async def test_a_builder_that_has_built(ml, options, cell):
    scene = await set_scene(ml, options)
    scene.graph = await scene.builder.build({"y": scene.builder.add(scene.input, scene.builder.constant(ONES))})
    await assert_refused(cell.method, lambda: cell.call(scene), cell.error, rf"{cell.method}\(\).*{cell.words}")
    await assert_works("dispatch", scene)


@refusals(
    ("build", "none", lambda s: s.builder.build({}), TypeError, "outputs is empty"),
    ("build", "an empty name", lambda s: s.builder.build({"": s.output}), TypeError, "name is empty"),
    ("build", "an input", lambda s: s.builder.build({"y": s.input}), TypeError, r"'y'.*an input.*identity\(\)"),
    ("build", "a constant", lambda s: s.builder.build({"y": s.builder.constant(ONES)}), TypeError, "'y'.*constant"),
    (
        "build",
        "a constant buffer",
        lambda s: s.builder.build({"y": s.builder.constant(s.constant)}),
        TypeError,
        r"'y'.*constant.*identity\(\)",
    ),
)
async def test_outputs_that_cannot_be_built(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


@refusals(
    ("dispatch", "a missing input", lambda s: s.dispatch(inputs={}), TypeError, r"inputs are \[\].*\['x'\]"),
    ("dispatch", "a missing output", lambda s: s.dispatch(outputs={}), TypeError, r"outputs are \[\].*\['y'\]"),
    ("dispatch", "a misnamed input", lambda s: s.dispatch(inputs={"X": s.x}), TypeError, r"\['X'\].*\['x'\]"),
    ("dispatch", "a misnamed output", lambda s: s.dispatch(outputs={"x": s.y}), TypeError, r"\['x'\].*\['y'\]"),
    (
        "dispatch",
        "one input too many",
        lambda s: s.dispatch(inputs={"x": s.x, "z": s.flagless}),
        TypeError,
        r"inputs are \['x', 'z'\].*\['x'\]",
    ),
    (
        "dispatch",
        "one output too many",
        lambda s: s.dispatch(outputs={"y": s.y, "z": s.flagless}),
        TypeError,
        r"outputs are \['y', 'z'\].*\['y'\]",
    ),
)
async def test_buffers_under_the_wrong_names(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused_and_harmless(scene, cell)


@pytest.mark.parametrize("side", ["inputs", "outputs"])
@pytest.mark.parametrize(
    ("data_type", "shape"), [("int32", [2]), ("float16", [2]), ("float32", [1, 2]), ("float32", [3]), ("float32", [])]
)
async def test_a_buffer_of_another_data_type_or_shape_than_the_graphs(scene, side, data_type, shape):
    unfit = await scene.context.create_buffer(data_type=data_type, shape=shape)
    name = {"inputs": "x", "outputs": "y"}[side]

    def dispatch():
        scene.dispatch(**{side: {name: unfit}})

    caught = await assert_refused("dispatch", dispatch, TypeError, rf"{side}\['{name}'\]")
    assert f"is {data_type} {shape}; it must be float32 [2]" in str(caught.value)
    await assert_works("dispatch", scene)
