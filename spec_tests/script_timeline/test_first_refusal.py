"""A call that is wrong in two respects is refused for the one that the specification's algorithm meets first."""

import numpy as np
import pytest

from spec_tests.support.scene import ONES, assert_refused, set_scene
from webnn_py import DestroyedBufferError, InvalidStateError, MLGraphBuilder, SecurityError, open_ml

LONG = np.ones(3, np.float32)


@pytest.fixture
async def scene(ml, options):
    return await set_scene(ml, options)


CASES = {
    "reading: another context, then destroyed": (
        "read_buffer",
        lambda s: (s.foreign.destroy(), s.context.read_buffer(s.foreign))[1],
        TypeError,
        "another context",
    ),
    "reading: destroyed, then a bad out": (
        "read_buffer",
        lambda s: s.context.read_buffer(s.destroyed, out=LONG),
        DestroyedBufferError,
        "destroyed",
    ),
    "reading: not readable, then a bad out": (
        "read_buffer",
        lambda s: s.context.read_buffer(s.flagless, out=LONG),
        TypeError,
        "not readable",
    ),
    "writing: another context, then bad data": (
        "write_buffer",
        lambda s: s.context.write_buffer(s.foreign, LONG),
        TypeError,
        "another context",
    ),
    "writing: destroyed, then bad data": (
        "write_buffer",
        lambda s: s.context.write_buffer(s.destroyed, LONG),
        DestroyedBufferError,
        "destroyed",
    ),
    "writing: not writable, then bad data": (
        "write_buffer",
        lambda s: s.context.write_buffer(s.flagless, LONG),
        TypeError,
        "not writable",
    ),
    "creating: lost, then a dimension of zero": (
        "create_buffer",
        lambda s: (s.context.destroy(), s.context.create_buffer(data_type="int8", shape=[0]))[1],
        InvalidStateError,
        "lost",
    ),
    "creating: a data type that is none, then lost": (
        "create_buffer",
        lambda s: (s.context.destroy(), s.context.create_buffer(data_type="int", shape=[1]))[1],
        TypeError,
        "data_type is 'int'",
    ),
    "creating a constant: lost, then bad data": (
        "create_constant_buffer",
        lambda s: (s.context.destroy(), s.context.create_constant_buffer(LONG, data_type="int8", shape=[1]))[1],
        InvalidStateError,
        "lost",
    ),
    "creating a constant: a dimension of zero, then bad data": (
        "create_constant_buffer",
        lambda s: s.context.create_constant_buffer(LONG, data_type="int8", shape=[0]),
        TypeError,
        "dimension 0",
    ),
    "dispatching: the graph of another context, then destroyed": (
        "dispatch",
        lambda s: (s.foreign_graph.destroy(), s.dispatch(graph=s.foreign_graph))[1],
        TypeError,
        "another context",
    ),
    "dispatching: the graph destroyed, then a buffer twice": (
        "dispatch",
        lambda s: s.dispatch(graph=s.destroyed_graph, outputs={"y": s.x}),
        InvalidStateError,
        "graph is destroyed",
    ),
    "dispatching: a buffer twice, then destroyed": (
        "dispatch",
        lambda s: s.dispatch(inputs={"x": s.destroyed}, outputs={"y": s.destroyed}),
        TypeError,
        "given twice",
    ),
    "dispatching: a buffer of another context, then one destroyed": (
        "dispatch",
        lambda s: s.dispatch(inputs={"x": s.foreign}, outputs={"y": s.destroyed}),
        TypeError,
        "another context",
    ),
    "dispatching: a buffer destroyed, then a name missing": (
        "dispatch",
        lambda s: s.dispatch(inputs={}, outputs={"y": s.destroyed}),
        DestroyedBufferError,
        "destroyed",
    ),
    "dispatching: inputs that do not fit, then outputs": (
        "dispatch",
        lambda s: s.dispatch(inputs={"z": s.x}, outputs={"z": s.y}),
        TypeError,
        "inputs are",
    ),
    "dispatching: something that is no graph, then lost": (
        "dispatch",
        lambda s: (s.context.destroy(), s.dispatch(graph=None))[1],
        TypeError,
        "graph is None; it must be an MLGraph",
    ),
    "dispatching: something that is no buffer, then the graph destroyed": (
        "dispatch",
        lambda s: s.dispatch(graph=s.destroyed_graph, inputs={"x": ONES}),
        TypeError,
        r"inputs\['x'\] is array.*must be an MLBuffer",
    ),
    "a constant buffer: another context, then destroyed": (
        "constant",
        lambda s: (s.foreign_constant.destroy(), s.builder.constant(s.foreign_constant))[1],
        TypeError,
        "another context",
    ),
    "a constant buffer: destroyed, then not constant": (
        "constant",
        lambda s: s.builder.constant(s.destroyed),
        DestroyedBufferError,
        "destroyed",
    ),
    "a constant buffer: destroyed, then the builder has built": (
        "constant",
        lambda s: (s.builder.build({"y": s.output}), s.builder.constant(s.destroyed_constant))[1],
        DestroyedBufferError,
        "destroyed",
    ),
    "a constant buffer: not constant, then the builder has built": (
        "constant",
        lambda s: (s.builder.build({"y": s.output}), s.builder.constant(s.x))[1],
        TypeError,
        "not constant",
    ),
    "an input: the builder has built, then the name is empty": (
        "input",
        lambda s: (s.builder.build({"y": s.output}), s.builder.input("", data_type="int8", shape=[1]))[1],
        InvalidStateError,
        "has built",
    ),
    "an input: the name is empty, then a dimension of zero": (
        "input",
        lambda s: s.builder.input("", data_type="int8", shape=[0]),
        TypeError,
        "name is empty",
    ),
    "an input: the name is taken, then a dimension of zero": (
        "input",
        lambda s: s.builder.input("x", data_type="int8", shape=[0]),
        TypeError,
        "another input of this builder has it",
    ),
    "an input: a name that is no string, then the builder has built": (
        "input",
        lambda s: (s.builder.build({"y": s.output}), s.builder.input(1, data_type="int8", shape=[1]))[1],
        TypeError,
        "name is 1; it must be a string",
    ),
    "a constant: the builder has built, then bad data": (
        "constant",
        lambda s: (s.builder.build({"y": s.output}), s.builder.constant(b"", data_type="int8", shape=[1]))[1],
        InvalidStateError,
        "has built",
    ),
    "a constant: a dimension of zero, then bad data": (
        "constant",
        lambda s: s.builder.constant(b"1", data_type="int8", shape=[0]),
        TypeError,
        "dimension 0",
    ),
    "an operator: the builder has built, then another builder's operand": (
        "add",
        lambda s: (s.builder.build({"y": s.output}), s.builder.add(s.input, s.foreign_output))[1],
        InvalidStateError,
        "has built",
    ),
    "an operator: something that is no operand, then the builder has built": (
        "add",
        lambda s: (s.builder.build({"y": s.output}), s.builder.add(s.input, 1))[1],
        TypeError,
        "b is 1; it must be an MLOperand",
    ),
    "building: has built, then no outputs": (
        "build",
        lambda s: (s.builder.build({"y": s.output}), s.builder.build({}))[1],
        InvalidStateError,
        "has built",
    ),
    "building: lost, then an input as an output": (
        "build",
        lambda s: (s.context.destroy(), s.builder.build({"y": s.input}))[1],
        InvalidStateError,
        "lost",
    ),
    "building: something that is no operand, then has built": (
        "build",
        lambda s: (s.builder.build({"y": s.output}), s.builder.build({"y": 1}))[1],
        TypeError,
        r"outputs\['y'\] is 1; it must be an MLOperand",
    ),
    "building: an empty name, then another builder's operand": (
        "build",
        lambda s: s.builder.build({"": s.foreign_output}),
        TypeError,
        "name is empty",
    ),
    "building: outputs in the order given": (
        "build",
        lambda s: s.builder.build({"first": s.foreign_output, "": s.output, "last": s.input}),
        TypeError,
        r"outputs\['first'\] belongs to another builder",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_first_reason_is_the_one_that_is_told(scene, case):
    method, call, error, words = CASES[case]
    await assert_refused(method, lambda: call(scene), error, rf"{method}\(\).*{words}")


async def test_a_builder_is_denied_by_the_policy_before_it_is_refused_for_the_lost_context(options):
    allowed = True
    async with open_ml(policy=lambda: allowed) as ml:
        context = await ml.create_context(**options)
        context.destroy()
        allowed = False
        with pytest.raises(SecurityError, match=r"MLGraphBuilder\(\).*policy"):
            MLGraphBuilder(context)


async def test_a_context_is_refused_for_its_options_before_the_policy_is_asked():
    async with open_ml(policy=lambda: False) as ml:
        await assert_refused(
            "create_context", lambda: ml.create_context(power_preference="max"), TypeError, "power_preference is 'max'"
        )
