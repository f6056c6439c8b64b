"""Conversion from float32 to float16 in a few vectorized passes.

numpy narrows one element at a time and, where a result is subnormal or overflows, raises the processor's exception
flags: a softmax, whose results are mostly that small, would take 35 times as long.
"""

import numpy as np

from webnn_py.devices.numpy.table import Array, scalar

EXPONENT_BITS = scalar(0x7F800000, "int32")
BEYOND_NAN_BITS = scalar(~0x7E00, "int16")
"""The bits that are not set in NaN."""
MANTISSA_SHIFT = scalar(13, "int32")
SIGN_BIT = scalar(-0x8000, "int16")

ZERO = scalar(0, "float32")
OVERFLOW = scalar(2.0**16, "float32")
UNIT = scalar(2.0**13 * (1 + 2.0**-12), "float32")
"""The ratio of the addend for an exponent to its power of two; it also puts a 2 where float16 has the exponent."""
SUBNORMAL_UNIT = scalar(0.5 * (1 + 2.0**-12), "float32")
INFINITY = scalar(np.inf, "float32")

BLOCK = 2**16
"""The most elements that are narrowed at a time, which fit into the cache with their scratch."""

FEW = 2**6
"""The most elements that numpy narrows faster, whatever they are."""

NARROWING = 8
"""The bytes of scratch for narrowing each element."""


def float32(x: Array) -> Array:
    """Return numbers of any type as float32; a float32 array is returned as it is."""
    return x.astype(np.float32, copy=False)


def narrow(x: Array, y: Array) -> None:
    """Fill float16 ``y`` with float32 ``x``, rounded to the nearest, ties to even; block by block."""
    if x.size <= FEW:
        np.copyto(y, x, casting="same_kind")
        return
    is_dense = x.flags.c_contiguous and y.flags.c_contiguous
    if not is_dense and x.flags.f_contiguous and y.flags.f_contiguous:
        x, y, is_dense = x.T, y.T, True
    if is_dense:
        x, y = x.reshape(-1), y.reshape(-1)
        step = -(-x.size // -(-x.size // BLOCK))
        for start in range(0, x.size, step):
            _narrow(x[start : start + step], y[start : start + step])
    elif x.size <= BLOCK // 2:
        # In memory order, so that they are copied in one run, or not at all.
        axes = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
        dense = np.ascontiguousarray(x.transpose(axes))
        halves = np.empty_like(dense, np.float16)
        narrow(dense, halves)
        np.copyto(y.transpose(axes), halves)
    elif len(x) == 1:
        narrow(x[0], y[0])
    else:
        step = max(1, BLOCK // 2 * len(x) // x.size)
        for start in range(0, len(x), step):
            narrow(x[start : start + step], y[start : start + step])


def _narrow(x: Array, y: Array) -> None:
    """Narrow one block, a row of numbers.

    Adding the power of two whose last place is float16's last place at |x| makes the processor round, and leaves the
    significand in the sum's low bits. The power's own bits hold the exponent up to a constant, which the addend
    includes. Only the low 16 bits count.
    """
    magnitude = np.abs(x)
    highest = np.maximum.reduce(magnitude)
    if not highest <= OVERFLOW:
        magnitude.clip(ZERO, OVERFLOW, out=magnitude)
    power_bits = np.bitwise_and(magnitude.view(np.int32), EXPONENT_BITS)
    power = power_bits.view(np.float32)
    np.multiply(power, UNIT, out=power)
    power.clip(SUBNORMAL_UNIT, INFINITY, out=power)
    bits = np.add(magnitude, power, out=magnitude).view(np.int32)
    np.right_shift(power_bits, MANTISSA_SHIFT, out=power_bits)
    np.add(bits, power_bits, out=bits)
    halves = y.view(np.int16)
    np.copyto(halves, bits, casting="unsafe")
    del magnitude, power, power_bits, bits  # so that the sign reuses their memory
    sign = np.signbit(x).view(np.int8).astype(np.int16)
    np.multiply(sign, SIGN_BIT, out=sign)  # faster than a shift
    np.bitwise_or(halves, sign, out=halves)
    if np.isnan(highest):
        # Masks of bits, since numpy's masked copies branch at each element.
        unordered = np.negative(np.isnan(x), dtype=np.int16)
        np.bitwise_or(halves, unordered, out=halves)
        np.bitwise_and(unordered, BEYOND_NAN_BITS, out=unordered)
        np.bitwise_xor(halves, unordered, out=halves)
