"""Conversion between float32 and float16 in a few vectorized passes.

numpy converts one element at a time and, where a result is subnormal or overflows, raises the processor's exception
flags, which makes it a hundred times slower: for the small numbers that softmax is full of, for instance.
"""

import numpy as np

from webnn_py.device.on_numpy.table import Array, scalar

INFINITY_BITS = 0x7C00
NEGATIVE_ZERO_BITS = 0x8000
NEGATIVE_INFINITY_BITS = 0xFC00
MAGNITUDE_BITS = scalar(0x7FFF, "int16")

WITHOUT_SIGN_COPIES = scalar(-0x70000001, "int32")
EXPONENT_BITS = scalar(0x7F800000, "int32")
BEYOND_NAN_BITS = scalar(~0x7E00, "int16")
"""The bits that NaN has not."""
MANTISSA_SHIFT = scalar(13, "int32")
SIGN_BIT = scalar(-0x8000, "int16")
WITHOUT_SIGN = scalar(0x7FFFFFFF, "int32")
LEAST_NORMAL_BITS = scalar(0x38800000, "int32")
NORMAL_SPAN = scalar(0x477FF000 - 0x38800000, "uint32")
"""Between the bits, in float32, of the least normal number of float16 and of what is rounded to infinity."""

BIAS = scalar(2.0**112, "float32")
"""Between float32's exponents and float16's."""

LAST_AND_SIGN = scalar(0x10000001, "int32")
"""Where a shift by 13 puts the last bit that float16 keeps, and where the next one takes the sign from."""
BELOW_HALF = scalar(0xFFF - (112 << 23), "int32")
"""Less than half of that bit, by one; and what takes float32's exponents to float16's."""
LEAST_NORMAL = scalar(2.0**-14, "float32")

ZERO = scalar(0, "float32")
OVERFLOW = scalar(2.0**16, "float32")
UNIT = scalar(2.0**13 * (1 + 2.0**-12), "float32")
"""Between a power of two and the one to add to numbers of that exponent; with a 2 where float16 has the exponent."""
SUBNORMAL_UNIT = scalar(0.5 * (1 + 2.0**-12), "float32")
INFINITY = scalar(np.inf, "float32")

BLOCK = 2**16
"""The most elements that are narrowed at a time: they fit into the cache with the scratch that it takes."""

SMALL = 2**12
"""The elements that numpy widens sooner than several passes do."""

SAMPLE = 2**9
"""The numbers that are looked at before all, for negative and tiny ones: most arrays that have many have one there."""

FEW = 2**12
"""The most elements that numpy narrows sooner, if it can do with few of them as with the others."""

FEWEST = 2**6
"""The most elements that numpy narrows sooner whatever they are, also a few among others."""

COPIED = 2**15
"""The most elements that are widened at a time in memory of their own."""

NARROWING = 8
"""The bytes of scratch that narrowing takes for each element."""


def widen(x: Array, y: Array) -> None:
    """Fill float32 ``y`` with float16 ``x``: put the bits in their places, and let a product correct the exponent.

    Infinities and NaN, which have the highest exponent, come out as finite numbers beyond float16's; numpy does better.
    """
    if x.size <= SMALL:
        np.copyto(y, x)
        return
    wide, halves = y.view(np.int32), x.view(np.int16)
    # Of the bits, which are half as many bytes: with the sign those of negative numbers are the highest.
    highest = halves.view(np.uint16).max()
    np.copyto(wide, halves)
    np.left_shift(wide, MANTISSA_SHIFT, out=wide)
    if highest >= NEGATIVE_ZERO_BITS:
        np.bitwise_and(wide, WITHOUT_SIGN_COPIES, out=wide)
    np.multiply(y, BIAS, out=y)
    if highest >= NEGATIVE_INFINITY_BITS or (highest >= INFINITY_BITS and halves.max() >= INFINITY_BITS):
        np.copyto(y, x)


def in_float32(x: Array) -> Array:
    """Numbers of any type as float32; a float32 array is returned as it is."""
    if x.dtype != np.float16:
        return x.astype(np.float32, copy=False)
    y = np.empty_like(x, np.float32)
    widen(x, y)
    return y


def copy_in_float32(x: Array, y: Array) -> None:
    """Fill float32 ``y``, however its elements lie, with numbers of any type.

    Float16 is widened in dense memory: several passes over short runs would take longer than numpy's one.
    """
    if x.dtype != np.float16:
        np.copyto(y, x)
    elif x.size <= COPIED:
        np.copyto(y, in_float32(x))
    elif len(x) == 1:
        copy_in_float32(x[0], y[0])
    else:
        step = max(1, COPIED * len(x) // x.size)
        for start in range(0, len(x), step):
            copy_in_float32(x[start : start + step], y[start : start + step])


def narrow(x: Array, y: Array) -> None:
    """Fill float16 ``y`` with float32 ``x``, rounded to the nearest, ties to even; block by block."""
    if x.size <= FEW and (x.size <= FEWEST or _is_quick(x)):
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
        # In the order in which they lie, so that they are copied as they are, or need not be.
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


def _is_quick(x: Array) -> bool:
    """Whether so few numbers are subnormal in float16, or beyond it, that numpy narrows them all sooner."""
    bits = np.bitwise_and(x.view(np.int32), WITHOUT_SIGN)
    zeros = x.size - np.count_nonzero(bits)
    np.subtract(bits, LEAST_NORMAL_BITS, out=bits)
    unusual = np.count_nonzero(np.greater_equal(bits.view(np.uint32), NORMAL_SPAN))
    return bool(unusual - zeros <= FEWEST)


def _narrow(x: Array, y: Array) -> None:
    """Narrow one block, a row of numbers: as usual ones, unless some are beyond float16 or not few are tiny."""
    if np.count_nonzero(np.less(np.abs(x[:SAMPLE]), LEAST_NORMAL)):  # sooner than any()
        _narrow_any(x, y, np.abs(x) if _is_signed(x) else x)
        return
    magnitude = np.abs(x)
    is_tiny = np.less(magnitude, LEAST_NORMAL)
    tiny_count = np.count_nonzero(is_tiny)
    if tiny_count > FEWEST or not np.maximum.reduce(magnitude) < OVERFLOW:
        del is_tiny  # so that all takes no more memory than what follows
        _narrow_any(x, y, magnitude)
        return
    _narrow_usual(x.view(np.int32), y.view(np.int16), magnitude.view(np.int32))
    if tiny_count:
        tiny = is_tiny.nonzero()[0]
        y[tiny] = x[tiny].astype(np.float16)


def _is_signed(x: Array) -> bool:
    """Whether some numbers of a row are negative, or -0."""
    return bool(np.count_nonzero(np.signbit(x[:SAMPLE]))) or bool(np.minimum.reduce(x.view(np.int32)) < 0)


def _narrow_usual(x: Array, y: Array, bits: Array) -> None:
    """Narrow the bits of numbers that are normal in float16, or nearly so large as not to be.

    Added to a number's bits, the last bit that float16 keeps and a little less than half of it round. A shift by as
    many bits as are dropped brings that bit to the end, and copies the sign to where a second one has it in its place.

    Args:
        x: the numbers' bits.
        y: float16's, to be filled.
        bits: scratch of as many.
    """
    np.right_shift(x, MANTISSA_SHIFT, out=bits)
    np.bitwise_and(bits, LAST_AND_SIGN, out=bits)
    np.add(bits, x, out=bits)
    np.add(bits, BELOW_HALF, out=bits)
    np.right_shift(bits, MANTISSA_SHIFT, out=bits)
    np.copyto(y, bits, casting="unsafe")


def _narrow_any(x: Array, y: Array, magnitude: Array) -> None:
    """Narrow any numbers, given their magnitudes, which are overwritten, unless they are the numbers themselves.

    Adding the power of two whose last place is float16's last place at |x| makes the processor round, and leaves the
    significand in the sum's low bits. The power's own bits hold the exponent, but for a constant, which it adds, too.
    Only the low 16 bits count.
    """
    highest = np.maximum.reduce(magnitude)
    if not highest <= OVERFLOW:
        magnitude = magnitude.clip(ZERO, OVERFLOW, out=None if magnitude is x else magnitude)
    power_bits = np.bitwise_and(magnitude.view(np.int32), EXPONENT_BITS)
    power = power_bits.view(np.float32)
    np.multiply(power, UNIT, out=power)
    power.clip(SUBNORMAL_UNIT, INFINITY, out=power)
    rounded = np.add(magnitude, power, out=None if magnitude is x else magnitude)
    bits = rounded.view(np.int32)
    np.right_shift(power_bits, MANTISSA_SHIFT, out=power_bits)
    np.add(bits, power_bits, out=bits)
    halves = y.view(np.int16)
    np.copyto(halves, bits, casting="unsafe")
    if magnitude is not x:
        del power, power_bits, rounded, bits  # so that the sign takes no more than they
        sign = np.signbit(x).view(np.int8).astype(np.int16)
        np.multiply(sign, SIGN_BIT, out=sign)  # sooner than a shift
        np.bitwise_or(halves, sign, out=halves)
    if np.isnan(highest):
        # Bits, since numpy's masked copies branch at each element.
        unordered = np.negative(np.isnan(x), dtype=np.int16)
        np.bitwise_or(halves, unordered, out=halves)
        np.bitwise_and(unordered, BEYOND_NAN_BITS, out=unordered)
        np.bitwise_xor(halves, unordered, out=halves)
