"""A data type may be given as numpy's: a dtype or a scalar type of one of the eight names."""

import numpy as np
import pytest

from spec_tests.support.cells import cells
from webnn_py import MLGraphBuilder
from webnn_py.descriptors import DATA_TYPES

WAYS = {
    "a dtype": np.dtype,
    "a scalar type": lambda name: np.dtype(name).type,
    "the dtype of an array": lambda name: np.zeros(1, name).dtype,
    "a dtype that names the machine's byte order": lambda name: np.dtype(name).newbyteorder("="),
}

DRAWN = {
    "input": lambda builder, data_type: builder.input("another", data_type=data_type, shape=[2]),
    "constant of bytes": lambda builder, data_type: builder.constant(
        np.zeros(2, data_type), data_type=data_type, shape=[2]
    ),
    "constant of a number": lambda builder, data_type: builder.constant(1, data_type=data_type),
    "cast": lambda builder, data_type: builder.cast(builder.input("x", data_type="uint8", shape=[2]), data_type),
}

CREATED = {
    "create_buffer": lambda context, data_type: context.create_buffer(data_type=data_type, shape=[2]),
    "create_constant_buffer": lambda context, data_type: context.create_constant_buffer(
        np.zeros(2, data_type), data_type=data_type, shape=[2]
    ),
}


@cells("name", DATA_TYPES)
@cells("way", WAYS)
@cells("method", DRAWN)
async def test_an_operand_is_drawn_with(numpy_context, method, way, name):
    operand = DRAWN[method](MLGraphBuilder(numpy_context), WAYS[way](name))
    assert operand.data_type == name
    assert type(operand.data_type) is str


@cells("name", DATA_TYPES)
@cells("way", WAYS)
@cells("method", CREATED)
async def test_a_buffer_is_created_with(numpy_context, method, way, name):
    buffer = await CREATED[method](numpy_context, WAYS[way](name))
    assert buffer.data_type == name
    assert type(buffer.data_type) is str


@cells("operator", ["arg_min", "arg_max"])
@cells("data_type", [np.int64, np.dtype("int64"), np.longlong, np.dtype(np.longlong)])
async def test_indices_are_of(numpy_context, operator, data_type):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type=np.float32, shape=[2])
    assert getattr(builder, operator)(x, 0, output_data_type=data_type).data_type == "int64"


@cells(
    "data_type",
    [np.float64, np.dtype(bool), np.bool_, np.dtype("float32").newbyteorder(), np.floating, float, int, "<f4"],
    ids=repr,
)
async def test_an_operator_refuses(numpy_context, data_type):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2])
    allowed = "must be one of float32, float16, .*uint8, or numpy's native dtype of that name$"
    with pytest.raises(TypeError, match=rf"^cast\(\): data_type is .*; it {allowed}"):
        builder.cast(x, data_type)
