"""Every method refuses every wrong condition by the documented error.

Methods that return promises reject at the call; the others raise. After every refusal a correct call works.
"""

from typing import NamedTuple

import numpy as np
import pytest

from spec_tests.support.cells import cells
from spec_tests.support.scene import F32, ONES, assert_refused, assert_works, set_scene
from spec_tests.support.watched_device import REASONS, WatchedDevice
from webnn_py import (
    DestroyedBufferError,
    InvalidStateError,
    MLGraphBuilder,
    NotSupportedError,
    SecurityError,
    open_ml,
)


class Cell(NamedTuple):
    method: str
    what: str
    call: object
    words: str
    error: type = TypeError


def refusals(*rows, each_alone=False):
    """Return a decorator that runs a test for each of these calls, as one test or each as a test of its own."""
    given = [Cell(*row) for row in rows]
    decorate = pytest.mark.parametrize if each_alone else cells
    return decorate("cell", given, ids=[f"{cell.method}, {cell.what}" for cell in given])


@refusals(
    ("create_context", "at all", lambda s: s.ml.create_context(), r"create_context\(\).*policy", SecurityError),
    ("MLGraphBuilder", "at all", lambda s: MLGraphBuilder(s.context), r"MLGraphBuilder\(\).*policy", SecurityError),
)
async def test_a_policy_denies_contexts_and_builders(cell, options):
    allowed = True
    async with open_ml(policy=lambda: allowed) as ml:
        scene = await set_scene(ml, options)
        allowed = False
        await assert_refused(cell.method, lambda: cell.call(scene), cell.error, cell.words)
        allowed = True
        await assert_works(cell.method, scene)


NO_ADAPTER = r"create_context\(\): no adapter for WebGPU.*Vulkan, Metal or Direct3D 12.*install"
NO_DEVICE = r"create_context\(\): gpu_device is 1; it must be a wgpu.GPUDevice"


@refusals(
    ("create_context", "wgpu", lambda s: s.ml.create_context(backend="wgpu"), NO_ADAPTER, NotSupportedError),
    ("create_context", "a device", lambda s: s.ml.create_context(gpu_device=1), NO_DEVICE),
)
async def test_a_context_on_a_gpu_that_is_not_there_is_refused(ml, options, cell, no_adapters):
    scene = await set_scene(ml, options)
    with pytest.raises(cell.error, match=cell.words):  # looked for in parallel, so not at the call
        await cell.call(scene)
    await assert_works(cell.method, scene)


LOST = [
    ("create_buffer", "at all", lambda s: s.context.create_buffer(**F32), InvalidStateError),
    ("create_constant_buffer", "at all", lambda s: s.context.create_constant_buffer(ONES, **F32), InvalidStateError),
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


def after_the_loss(reason):
    return [(*row[:3], rf"{row[0]}\(\).*context is lost: {reason}", row[3]) for row in LOST]


@refusals(*after_the_loss(r"destroy\(\)"))
async def test_calls_are_refused_when_the_context_is_destroyed(ml, options, cell):
    scene = await set_scene(ml, options)
    scene.context.destroy()
    await scene.context.drain()
    await assert_refused_and_harmless_elsewhere(scene, cell)


# Each is a test of its own, at whose end the GPU device that it has lost is closed.
@refusals(*after_the_loss(f"({'|'.join(REASONS.values())})"), each_alone=True)
async def test_calls_are_refused_when_the_device_is_lost(ml, backend, elsewhere, cell):
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


WRONG = {
    "of another context or builder": [
        ("read_buffer", "a buffer", lambda s: s.context.read_buffer(s.foreign), "MLBuffer.*another context"),
        ("write_buffer", "a buffer", lambda s: s.context.write_buffer(s.foreign, ONES), "another context"),
        ("dispatch", "a graph", lambda s: s.dispatch(graph=s.foreign_graph), "graph belongs to another context"),
        ("dispatch", "an input", lambda s: s.dispatch(inputs={"x": s.foreign}), "another context"),
        ("dispatch", "an output", lambda s: s.dispatch(outputs={"y": s.foreign}), "another context"),
        ("build", "an operand", lambda s: s.builder.build({"y": s.foreign_output}), r"outputs\['y'\].*builder"),
        ("add", "an operand", lambda s: s.builder.add(s.input, s.foreign_output), "b belongs to another builder"),
        ("constant", "a buffer", lambda s: s.builder.constant(s.foreign_constant), "another context"),
    ],
    "destroyed": [
        ("read_buffer", "a buffer", lambda s: s.context.read_buffer(s.destroyed), "destroyed", DestroyedBufferError),
        ("write_buffer", "one", lambda s: s.context.write_buffer(s.destroyed, ONES), "destroyed", DestroyedBufferError),
        ("dispatch", "an input", lambda s: s.dispatch(inputs={"x": s.destroyed}), "destroyed", DestroyedBufferError),
        ("dispatch", "an output", lambda s: s.dispatch(outputs={"y": s.destroyed}), "destroyed", DestroyedBufferError),
        ("constant", "it", lambda s: s.builder.constant(s.destroyed_constant), "destroyed", DestroyedBufferError),
        ("dispatch", "it", lambda s: s.dispatch(graph=s.destroyed_graph), "graph is destroyed", InvalidStateError),
    ],
    "without the flag": [
        ("read_buffer", "a buffer", lambda s: s.context.read_buffer(s.flagless), "MLBuffer.*not readable"),
        ("write_buffer", "a buffer", lambda s: s.context.write_buffer(s.flagless, ONES), "MLBuffer.*not writable"),
    ],
    "constant, or not constant": [
        ("read_buffer", "a buffer", lambda s: s.context.read_buffer(s.constant), "constant.*not readable"),
        ("write_buffer", "a buffer", lambda s: s.context.write_buffer(s.constant, ONES), "constant.*not writable"),
        ("dispatch", "an input", lambda s: s.dispatch(inputs={"x": s.constant}), r"inputs\['x'\].*constant"),
        ("dispatch", "an output", lambda s: s.dispatch(outputs={"y": s.constant}), r"outputs\['y'\].*constant"),
        ("constant", "a buffer", lambda s: s.builder.constant(s.x), "not constant; create_constant_buffer"),
    ],
    "given twice": [
        ("dispatch", "inputs", lambda s: s.dispatch(inputs={"x": s.x, "z": s.x}), "given twice"),
        ("dispatch", "outputs", lambda s: s.dispatch(outputs={"y": s.y, "z": s.y}), "given twice"),
        ("dispatch", "an input and an output", lambda s: s.dispatch(outputs={"y": s.x}), "given twice"),
    ],
    "under the wrong names": [
        ("dispatch", "no input", lambda s: s.dispatch(inputs={}), r"inputs are \[\].*\['x'\]"),
        ("dispatch", "no output", lambda s: s.dispatch(outputs={}), r"outputs are \[\].*\['y'\]"),
        ("dispatch", "another input", lambda s: s.dispatch(inputs={"X": s.x}), r"\['X'\].*\['x'\]"),
        ("dispatch", "another output", lambda s: s.dispatch(outputs={"x": s.y}), r"\['x'\].*\['y'\]"),
        (
            "dispatch",
            "one input too many",
            lambda s: s.dispatch(inputs={"x": s.x, "z": s.flagless}),
            r"inputs are \['x', 'z'\].*\['x'\]",
        ),
        (
            "dispatch",
            "one output too many",
            lambda s: s.dispatch(outputs={"y": s.y, "z": s.flagless}),
            r"outputs are \['y', 'z'\].*\['y'\]",
        ),
    ],
}


@refusals(*[(row[0], f"{row[1]} {condition}", *row[2:]) for condition, rows in WRONG.items() for row in rows])
async def test_arguments_are_refused_and_nothing_is_enqueued(ml, options, cell):
    scene = await set_scene(ml, options)
    await assert_refused(cell.method, lambda: cell.call(scene), cell.error, cell.words)
    assert scene.context.statistics().queued_operations == 0, "a refused call must enqueue nothing"
    await assert_works(cell.method, scene)


async def test_a_destroyed_constant_buffer_that_no_output_needs_is_not_refused(scene):
    scene.builder.add(scene.input, scene.builder.constant(scene.constant))
    scene.constant.destroy()
    await assert_works("build", scene)


async def test_a_dispatch_needs_no_flags_of_its_buffers(scene):
    scene.dispatch(outputs={"y": scene.flagless})
    scene.dispatch(inputs={"x": scene.flagless})
    np.testing.assert_array_equal(await scene.context.read_buffer(scene.y), [3, 4])


@pytest.mark.parametrize("side", ["inputs", "outputs"])
@pytest.mark.parametrize(
    ("data_type", "shape"), [("int32", [2]), ("float16", [2]), ("float32", [1, 2]), ("float32", [3]), ("float32", [])]
)
async def test_a_dispatch_refuses_a_buffer_of_another_data_type_or_shape(scene, side, data_type, shape):
    unfit = await scene.context.create_buffer(data_type=data_type, shape=shape)
    name = {"inputs": "x", "outputs": "y"}[side]

    def dispatch():
        scene.dispatch(**{side: {name: unfit}})

    caught = await assert_refused("dispatch", dispatch, TypeError, rf"{side}\['{name}'\]")
    assert f"is {data_type} {shape}; it must be float32 [2]" in str(caught.value)
    await assert_works("dispatch", scene)
