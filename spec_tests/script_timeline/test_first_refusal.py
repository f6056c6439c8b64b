"""A call that is wrong in two respects is refused for the one that the specification's algorithm checks first."""

import numpy as np
import pytest

from spec_tests.support.cells import cells
from spec_tests.support.scene import ONES, assert_refused, set_scene
from webnn_py import DestroyedBufferError, InvalidStateError, MLGraphBuilder, SecurityError, open_ml

LONG = np.ones(3, np.float32)
INT8 = {"data_type": "int8", "shape": [1]}
ZERO = {"data_type": "int8", "shape": [0]}


def ended(thing):
    """Destroy a buffer or a graph and return it."""
    thing.destroy()
    return thing


def lost(scene):
    """Destroy the scene's context."""
    scene.context.destroy()
    return scene


def built(scene):
    """Have the scene's builder build."""
    scene.builder.build({"y": scene.output})
    return scene


OUTPUTS_IN_ORDER = r"outputs\['first'\] belongs to another builder"
REFUSED = {
    TypeError: [
        (
            "read_buffer",
            "another context, destroyed",
            lambda s: s.context.read_buffer(ended(s.foreign)),
            "another context",
        ),
        ("read_buffer", "flag, out", lambda s: s.context.read_buffer(s.flagless, out=LONG), "not readable"),
        ("write_buffer", "another context, data", lambda s: s.context.write_buffer(s.foreign, LONG), "another context"),
        ("write_buffer", "flag, data", lambda s: s.context.write_buffer(s.flagless, LONG), "not writable"),
        (
            "create_buffer",
            "an unknown data type, lost",
            lambda s: lost(s).context.create_buffer(data_type="int", shape=[1]),
            "data_type is 'int'",
        ),
        (
            "create_constant_buffer",
            "a dimension of zero, data",
            lambda s: s.context.create_constant_buffer(LONG, **ZERO),
            "dimension 0",
        ),
        (
            "dispatch",
            "another context, destroyed",
            lambda s: s.dispatch(graph=ended(s.foreign_graph)),
            "another context",
        ),
        (
            "dispatch",
            "a buffer twice, destroyed",
            lambda s: s.dispatch(inputs={"x": s.destroyed}, outputs={"y": s.destroyed}),
            "given twice",
        ),
        (
            "dispatch",
            "a buffer of another context, one destroyed",
            lambda s: s.dispatch(inputs={"x": s.foreign}, outputs={"y": s.destroyed}),
            "another context",
        ),
        ("dispatch", "inputs, outputs", lambda s: s.dispatch(inputs={"z": s.x}, outputs={"z": s.y}), "inputs are"),
        ("dispatch", "no graph, lost", lambda s: lost(s).dispatch(graph=None), "graph is None; it must be an MLGraph"),
        (
            "dispatch",
            "no buffer, the graph destroyed",
            lambda s: s.dispatch(graph=s.destroyed_graph, inputs={"x": ONES}),
            r"inputs\['x'\] is array.*must be an MLBuffer",
        ),
        (
            "constant",
            "another context, destroyed",
            lambda s: s.builder.constant(ended(s.foreign_constant)),
            "another context",
        ),
        ("constant", "a buffer that is not constant, built", lambda s: built(s).builder.constant(s.x), "not constant"),
        ("constant", "a dimension of zero, data", lambda s: s.builder.constant(b"1", **ZERO), "dimension 0"),
        ("input", "an empty name, a dimension of zero", lambda s: s.builder.input("", **ZERO), "name is empty"),
        ("input", "a name that is taken, a dimension of zero", lambda s: s.builder.input("x", **ZERO), "another input"),
        ("input", "no name, built", lambda s: built(s).builder.input(1, **INT8), "name is 1; it must be a string"),
        ("add", "no operand, built", lambda s: built(s).builder.add(s.input, 1), "b is 1; it must be an MLOperand"),
        ("build", "no operand, built", lambda s: built(s).builder.build({"y": 1}), r"outputs\['y'\] is 1; it must be"),
        ("build", "an empty name, builder", lambda s: s.builder.build({"": s.foreign_output}), "name is empty"),
        (
            "build",
            "outputs in the order given",
            lambda s: s.builder.build({"first": s.foreign_output, "": s.output, "last": s.input}),
            OUTPUTS_IN_ORDER,
        ),
    ],
    DestroyedBufferError: [
        ("read_buffer", "destroyed, out", lambda s: s.context.read_buffer(s.destroyed, out=LONG), "destroyed"),
        ("write_buffer", "destroyed, data", lambda s: s.context.write_buffer(s.destroyed, LONG), "destroyed"),
        ("dispatch", "destroyed, no name", lambda s: s.dispatch(inputs={}, outputs={"y": s.destroyed}), "destroyed"),
        ("constant", "destroyed, not constant", lambda s: s.builder.constant(s.destroyed), "destroyed"),
        ("constant", "destroyed, built", lambda s: built(s).builder.constant(s.destroyed_constant), "destroyed"),
    ],
    InvalidStateError: [
        ("create_buffer", "lost, a dimension of zero", lambda s: lost(s).context.create_buffer(**ZERO), "lost"),
        (
            "create_constant_buffer",
            "lost, data",
            lambda s: lost(s).context.create_constant_buffer(LONG, **INT8),
            "lost",
        ),
        (
            "dispatch",
            "the graph destroyed, a buffer twice",
            lambda s: s.dispatch(graph=s.destroyed_graph, outputs={"y": s.x}),
            "graph is destroyed",
        ),
        ("input", "built, an empty name", lambda s: built(s).builder.input("", **INT8), "has built"),
        ("constant", "built, data", lambda s: built(s).builder.constant(b"", **INT8), "has built"),
        ("add", "built, builder", lambda s: built(s).builder.add(s.input, s.foreign_output), "has built"),
        ("build", "built, no outputs", lambda s: built(s).builder.build({}), "has built"),
        ("build", "lost, an input as an output", lambda s: lost(s).builder.build({"y": s.input}), "lost"),
    ],
}
"""Calls and their refusals: the method, what is wrong in the order of the checks, the call, and the message."""

CASES = [(error, *row) for error, rows in REFUSED.items() for row in rows]


@cells(("error", "method", "wrong", "call", "words"), CASES, ids=[f"{row[1]}: {row[2]}" for row in CASES])
async def test_the_first_reason_is_reported(ml, options, *, error, method, wrong, call, words):
    scene = await set_scene(ml, options)
    await assert_refused(method, lambda: call(scene), error, rf"{method}\(\).*{words}")


async def test_the_policy_denies_a_builder_before_the_lost_context_refuses_it(options):
    allowed = True
    async with open_ml(policy=lambda: allowed) as ml:
        context = await ml.create_context(**options)
        context.destroy()
        allowed = False
        with pytest.raises(SecurityError, match=r"MLGraphBuilder\(\).*policy"):
            MLGraphBuilder(context)


async def test_options_of_a_context_are_refused_before_the_policy_is_called():
    async with open_ml(policy=lambda: False) as ml:
        await assert_refused(
            "create_context", lambda: ml.create_context(power_preference="max"), TypeError, "power_preference is 'max'"
        )
