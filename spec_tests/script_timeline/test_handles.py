"""Handles are made by the library only, and stand for one thing each."""

import copy
import pickle

import pytest

import webnn_py
from spec_tests.support.drawing import build_add_one
from webnn_py import MLGraphBuilder
from webnn_py.runtime import Environment


@pytest.fixture
async def handles(ml, context):
    """One handle of each class, by the class's name."""
    buffer = await context.create_buffer(data_type="int8", shape=[1])
    found = [ml, context, buffer, await build_add_one(context, [1]), context.lost]
    builder = MLGraphBuilder(context)
    found += [builder, builder.input("x", data_type="int8", shape=[1]), Environment(ml)]
    return {type(handle).__name__: handle for handle in found}


NAMES = ("ML", "MLContext", "MLBuffer", "MLGraph", "MLPromise", "MLOperand")


@pytest.mark.parametrize("name", [*NAMES, "MLGraphBuilder", "Environment"])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
async def test_a_handle_cannot_be_copied(handles, name, duplicate):
    with pytest.raises(TypeError, match=rf"^{name} can be neither copied nor pickled"):
        duplicate(handles[name])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", [(), (1,)], ids=["no arguments", "an argument"])
def test_a_handle_has_no_public_constructor(name, arguments):
    with pytest.raises(TypeError, match=rf"^{name} has no public constructor; use \S+"):
        getattr(webnn_py, name)(*arguments)
