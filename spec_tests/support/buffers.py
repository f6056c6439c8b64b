"""Buffers that many tests use, in one line each."""

import numpy as np

from webnn_py import MLBuffer, MLContext


async def filled(context: MLContext, values, data_type="float32") -> MLBuffer:
    """A readable and writable buffer that holds ``values``."""
    array = np.array(values, data_type)
    buffer = await context.create_buffer(data_type=data_type, shape=array.shape, readable=True, writable=True)
    context.write_buffer(buffer, array)
    return buffer


async def zeroed(context: MLContext, shape, data_type="float32") -> MLBuffer:
    """A readable and writable buffer that was never written."""
    return await context.create_buffer(data_type=data_type, shape=shape, readable=True, writable=True)


async def constant(context: MLContext, values, data_type="float32") -> MLBuffer:
    """A constant buffer that holds ``values``."""
    array = np.array(values, data_type)
    return await context.create_constant_buffer(array, data_type=data_type, shape=array.shape)
