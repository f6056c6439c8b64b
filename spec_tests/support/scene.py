"""A stage for refusals: objects that the methods accept, and objects that are wrong in one respect each."""

from collections.abc import Callable

import attrs
import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number
from webnn_py import ML, MLBuffer, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLPromise

PROMISES = ("create_context", "create_buffer", "create_constant_buffer", "read_buffer", "build")
"""The methods that the IDL types ``Promise``: they reject, the others raise."""

ONES = np.ones(2, np.float32)


@attrs.define
class Scene:
    """Every buffer holds or takes float32 [2]; ``other`` is a second context of the same ``ml``."""

    ml: ML
    options: dict[str, object]
    context: MLContext
    other: MLContext
    graph: MLGraph
    x: MLBuffer
    y: MLBuffer
    flagless: MLBuffer
    constant: MLBuffer
    destroyed: MLBuffer
    destroyed_constant: MLBuffer
    destroyed_graph: MLGraph
    foreign: MLBuffer
    foreign_constant: MLBuffer
    foreign_graph: MLGraph
    builder: MLGraphBuilder
    input: MLOperand
    output: MLOperand
    foreign_output: MLOperand

    def dispatch(self, **changes) -> None:
        """A correct dispatch, but for ``changes``: graph, inputs, outputs."""
        arguments = {"graph": self.graph, "inputs": {"x": self.x}, "outputs": {"y": self.y}} | changes
        self.context.dispatch(**arguments)


async def set_scene(ml: ML, options: dict[str, object], elsewhere: dict[str, object] | None = None) -> Scene:
    """Make everything, on contexts with these options, the other's apart if given; nothing is queued afterwards."""
    context = await ml.create_context(**options)
    other = await ml.create_context(**(options if elsewhere is None else elsewhere))
    builder, foreign_builder = MLGraphBuilder(context), MLGraphBuilder(context)
    x, foreign_x = (b.input("x", data_type="float32", shape=[2]) for b in (builder, foreign_builder))
    scene = Scene(
        ml=ml,
        options=options,
        context=context,
        other=other,
        graph=await build_add_number(context, 1, [2]),
        x=await filled(context, [1, 2]),
        y=await zeroed(context, [2]),
        flagless=await context.create_buffer(data_type="float32", shape=[2]),
        constant=await constant(context, [1, 1]),
        destroyed=await zeroed(context, [2]),
        destroyed_constant=await constant(context, [1, 1]),
        destroyed_graph=await build_add_number(context, 1, [2]),
        foreign=await filled(other, [1, 2]),
        foreign_constant=await constant(other, [1, 1]),
        foreign_graph=await build_add_number(other, 1, [2]),
        builder=builder,
        input=x,
        output=builder.add(x, x),
        foreign_output=foreign_builder.add(foreign_x, foreign_x),
    )
    for thing in (scene.destroyed, scene.destroyed_constant, scene.destroyed_graph):
        thing.destroy()
    await context.drain()
    await other.drain()
    return scene


async def assert_refused(
    method: str, call: Callable[[], object], error: type[Exception], words: str
) -> pytest.ExceptionInfo[Exception]:
    """``call`` is refused in the way of its method: by a promise that is rejected at once, or by raising."""
    if method in PROMISES:
        promise = call()
        assert isinstance(promise, MLPromise), f"{method}() must give a promise"
        assert promise.state == "rejected", f"{method}() must reject at the call"
        with pytest.raises(error, match=words) as caught:
            await promise
    else:
        with pytest.raises(error, match=words) as caught:
            call()
    assert caught.type is error
    return caught


async def assert_works(method: str, scene: Scene) -> None:
    """A correct call of ``method`` does what it should."""
    await _CORRECT[method](scene)


async def _create_context(scene: Scene) -> None:
    context = await scene.ml.create_context(**scene.options)
    np.testing.assert_array_equal(await context.read_buffer(await zeroed(context, [2])), [0, 0])


async def _create_buffer(scene: Scene) -> None:
    np.testing.assert_array_equal(await scene.context.read_buffer(await zeroed(scene.context, [2])), [0, 0])


async def _create_constant_buffer(scene: Scene) -> None:
    scene.graph = await build_add_buffer(scene.context, await constant(scene.context, [1, 1]))
    await _dispatch(scene)


async def _read_buffer(scene: Scene) -> None:
    np.testing.assert_array_equal(await scene.context.read_buffer(scene.x), [1, 2])


async def _write_buffer(scene: Scene) -> None:
    scene.context.write_buffer(scene.y, 7 * ONES)
    np.testing.assert_array_equal(await scene.context.read_buffer(scene.y), [7, 7])


async def _dispatch(scene: Scene) -> None:
    scene.dispatch()
    np.testing.assert_array_equal(await scene.context.read_buffer(scene.y), [2, 3])


async def _build(scene: Scene) -> None:
    ones = scene.builder.constant(ONES)
    scene.graph = await scene.builder.build({"y": scene.builder.add(scene.input, ones)})
    await _dispatch(scene)


async def _make_builder(scene: Scene) -> None:
    scene.graph = await build_add_number(scene.context, 1, [2])
    await _dispatch(scene)


_CORRECT = {
    "create_context": _create_context,
    "create_buffer": _create_buffer,
    "create_constant_buffer": _create_constant_buffer,
    "read_buffer": _read_buffer,
    "write_buffer": _write_buffer,
    "dispatch": _dispatch,
    "build": _build,
    "add": _build,
    "input": _build,
    "constant": _build,
    "MLGraphBuilder": _make_builder,
}
