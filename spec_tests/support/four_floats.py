"""Buffers of four float32 numbers."""

import numpy as np

ONES = np.ones(4, np.float32)


async def buffers(context, count, **flags):
    options = {"readable": True, "writable": True, **flags}
    return [await context.create_buffer(data_type="float32", shape=[4], **options) for _ in range(count)]
