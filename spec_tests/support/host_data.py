"""Users' data in every form that Python has, and the three ways into the API."""

import array
import ctypes

import numpy as np

from webnn_py import MLBuffer, MLContext, MLGraphBuilder

ARRAY_CODES = {
    "float32": "f",
    "float16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "int8": "b",
    "uint8": "B",
}
"""The type codes of ``array.array``; it has no 16-bit float, for which 16-bit integers stand."""

CTYPES = {
    "float32": ctypes.c_float,
    "float16": ctypes.c_uint16,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
}


def extremes(data_type: str) -> np.ndarray:
    """Six values of a data type, [2, 3], with its extremes."""
    if data_type.startswith("float"):
        info = np.finfo(data_type)
        values = np.array([info.max, -np.inf, -0.0, info.smallest_subnormal, 1.5, -2.25], data_type)
    else:
        low, high = np.iinfo(data_type).min, np.iinfo(data_type).max
        values = np.array([low, high, 0, 1, high // 3, low // 3], data_type)
    return values.reshape(2, 3)


def as_ctypes(values: np.ndarray) -> object:
    """A ctypes array of the same shape and bytes."""
    kind = CTYPES[values.dtype.name]
    for size in reversed(values.shape):
        kind = kind * size
    return kind.from_buffer_copy(values.tobytes())


FORMS = {
    "a numpy array": lambda v: v.copy(),
    "a flat numpy array": lambda v: v.ravel(),
    "a read-only numpy array": lambda v: np.frombuffer(v.tobytes(), v.dtype).reshape(v.shape),
    "a numpy array in Fortran order": np.asfortranarray,
    "a transposed numpy array": lambda v: np.ascontiguousarray(v.T).T,
    "a strided numpy array": lambda v: np.repeat(v, 3, axis=1)[:, ::3],
    "a strided flat numpy array": lambda v: np.repeat(v.ravel(), 2)[::2],
    "a reversed numpy array": lambda v: v[::-1, ::-1].copy()[::-1, ::-1],
    "a numpy array of the other byte order": lambda v: v.astype(v.dtype.newbyteorder()),
    "an unaligned numpy array": lambda v: np.frombuffer(b"." + v.tobytes(), v.dtype, offset=1).reshape(v.shape),
    "a numpy array of uint8": lambda v: np.frombuffer(v.tobytes(), np.uint8),
    "bytes": lambda v: v.tobytes(),
    "a bytearray": lambda v: bytearray(v.tobytes()),
    "a memoryview of bytes": lambda v: memoryview(v.tobytes()),
    "a memoryview of signed bytes": lambda v: memoryview(v.tobytes()).cast("b"),
    "a memoryview of characters": lambda v: memoryview(v.tobytes()).cast("c"),
    "a strided memoryview of bytes": lambda v: memoryview(np.repeat(np.frombuffer(v.tobytes(), "u1"), 2).tobytes())[
        ::2
    ],
    "a reversed memoryview of bytes": lambda v: memoryview(v.tobytes()[::-1])[::-1],
    "a typed memoryview": memoryview,
    "a flat typed memoryview": lambda v: memoryview(v.ravel()),
    "a strided typed memoryview": lambda v: memoryview(np.repeat(v.ravel(), 2))[::2],
    "an array.array": lambda v: array.array(ARRAY_CODES[v.dtype.name], v.tobytes()),
    "an array.array of unsigned bytes": lambda v: array.array("B", v.tobytes()),
    "a ctypes array": as_ctypes,
    "a flat ctypes array": lambda v: as_ctypes(v.ravel()),
    "ctypes bytes": lambda v: (ctypes.c_uint8 * v.nbytes).from_buffer_copy(v.tobytes()),
    "ctypes characters": lambda v: (ctypes.c_char * v.nbytes).from_buffer_copy(v.tobytes()),
}
"""Forms in which the values of an array may be given."""


async def write(context: MLContext, data: object, data_type: str, shape) -> np.ndarray:
    """Through ``write_buffer()`` and back."""
    buffer = await context.create_buffer(data_type=data_type, shape=shape, readable=True, writable=True)
    context.write_buffer(buffer, data)
    return await context.read_buffer(buffer)


async def make_constant(context: MLContext, data: object, data_type: str, shape) -> np.ndarray:
    """Through ``constant()``, a graph and back."""
    builder = MLGraphBuilder(context)
    return await _run_reshape(context, builder, builder.constant(data, data_type=data_type, shape=shape))


async def create_constant(context: MLContext, data: object, data_type: str, shape) -> np.ndarray:
    """Through ``create_constant_buffer()``, a graph and back."""
    builder = MLGraphBuilder(context)
    held: MLBuffer = await context.create_constant_buffer(data, data_type=data_type, shape=shape)
    return await _run_reshape(context, builder, builder.constant(held))


async def _run_reshape(context, builder, operand):
    graph = await builder.build({"y": builder.reshape(operand, operand.shape)})
    output = await context.create_buffer(data_type=operand.data_type, shape=operand.shape, readable=True)
    context.dispatch(graph, {}, {"y": output})
    return await context.read_buffer(output)


WAYS_IN = {"write_buffer": write, "constant": make_constant, "create_constant_buffer": create_constant}
"""The methods that take users' data, by name; each is called and what arrived is read back."""
