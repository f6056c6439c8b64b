"""Objects that the methods accept, and objects that are wrong in one respect each, for tests of refusals."""

from collections.abc import Callable

import attrs
import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number
from webnn_py import ML, MLBuffer, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLPromise

PROMISES = ("create_context", "create_buffer", "create_constant_buffer", "read_buffer", "build")
"""The methods that the IDL types ``Promise``: they reject, the others raise."""

F32 = {"data_type": "float32", "shape": [2]}
ONES = np.ones(2, np.float32)


@attrs.define
class Scene:
    """Objects of the API; every buffer is float32 [2], and ``other`` is a second context of the same ``ml``."""

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
    x, foreign_x = (b.input("x", **F32) for b in (builder, foreign_builder))
    scene = Scene(
        ml=ml,
        options=options,
        context=context,
        other=other,
        graph=await build_add_number(context, 1, [2]),
        x=await filled(context, [1, 2]),
        y=await zeroed(context, [2]),
        flagless=await context.create_buffer(**F32),
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
    """Check that ``call`` is refused as its method refuses: by a promise that is rejected at once, or by raising."""
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
    """Check that a correct call of ``method`` has its effect."""
    context, builder = scene.context, scene.builder
    if method in {"create_context", "create_buffer"}:
        made = context if method == "create_buffer" else await scene.ml.create_context(**scene.options)
        assert (await made.read_buffer(await zeroed(made, [2]))).tolist() == [0, 0]
    elif method == "read_buffer":
        assert (await context.read_buffer(scene.x)).tolist() == [1, 2]
    elif method == "write_buffer":
        context.write_buffer(scene.y, 7 * ONES)
        assert (await context.read_buffer(scene.y)).tolist() == [7, 7]
    else:
        if method == "create_constant_buffer":
            scene.graph = await build_add_buffer(context, await constant(context, [1, 1]))
        elif method == "MLGraphBuilder":
            scene.graph = await build_add_number(context, 1, [2])
        elif method != "dispatch":
            scene.graph = await builder.build({"y": builder.add(scene.input, builder.constant(ONES))})
        scene.dispatch()
        assert (await context.read_buffer(scene.y)).tolist() == [2, 3]
