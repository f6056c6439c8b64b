"""A data type may be given as a dtype or scalar type of numpy that has one of the eight names."""

import numpy as np
import pytest

from spec_tests.support.cells import cells
from webnn_py import MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES

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


@cells("name", DATA_TYPES)
@cells("way", WAYS)
async def test_buffers_and_operands_take_data_types_of_numpy(numpy_context, way, name):
    builder, data_type = MLGraphBuilder(numpy_context), WAYS[way](name)
    described = {"data_type": data_type, "shape": [2]}
    things = [draw(builder, data_type) for draw in DRAWN.values()]
    things.append(await numpy_context.create_buffer(**described))
    things.append(await numpy_context.create_constant_buffer(np.zeros(2, data_type), **described))
    for thing in things:
        assert thing.data_type == name
        assert type(thing.data_type) is str


@cells("operator", ["arg_min", "arg_max"])
@cells("data_type", [np.int64, np.dtype("int64"), np.longlong, np.dtype(np.longlong)])
async def test_indices_take_data_types_of_numpy(numpy_context, operator, data_type):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type=np.float32, shape=[2])
    assert getattr(builder, operator)(x, 0, output_data_type=data_type).data_type == "int64"


@cells(
    "data_type",
    [np.float64, np.dtype(bool), np.bool_, np.dtype("float32").newbyteorder(), np.floating, float, int, "<f4"],
    ids=repr,
)
async def test_an_operator_refuses_other_data_types(numpy_context, data_type):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2])
    allowed = "must be one of float32, float16, .*uint8, or numpy's native dtype of that name$"
    with pytest.raises(TypeError, match=rf"^cast\(\): data_type is .*; it {allowed}"):
        builder.cast(x, data_type)
