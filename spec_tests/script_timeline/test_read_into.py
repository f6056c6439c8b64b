"""``read_buffer(buffer, out=…)`` fills any contiguous memory that fits, when its promise settles."""

import array
import ctypes

import numpy as np
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from spec_tests.support.buffers import filled
from spec_tests.support.cells import cells
from spec_tests.support.host_data import ARRAY_CODES, CTYPES, extremes
from webnn_py import DestroyedBufferError, open_ml
from webnn_py.core.descriptors import DATA_TYPES

F32 = np.array([1, 2, 3, 4], np.float32)

TARGETS = {
    "a numpy array": np.zeros_like,
    "a flat numpy array": lambda v: np.zeros(v.size, v.dtype),
    "a slice of a numpy array": lambda v: np.zeros((3, *v.shape), v.dtype)[1],
    "an unaligned numpy array": lambda v: np.frombuffer(bytearray(v.nbytes + 1), v.dtype, offset=1).reshape(v.shape),
    "a numpy array of uint8": lambda v: np.zeros(v.nbytes, np.uint8),
    "a bytearray": lambda v: bytearray(v.nbytes),
    "a memoryview of bytes": lambda v: memoryview(bytearray(v.nbytes)),
    "a slice of a memoryview": lambda v: memoryview(bytearray(v.nbytes + 5))[3:-2],
    "a memoryview of signed bytes": lambda v: memoryview(bytearray(v.nbytes)).cast("b"),
    "a memoryview of characters": lambda v: memoryview(bytearray(v.nbytes)).cast("c"),
    "a typed memoryview": lambda v: memoryview(np.zeros_like(v)),
    "an array.array": lambda v: array.array(ARRAY_CODES[v.dtype.name], bytes(v.nbytes)),
    "a ctypes array": lambda v: (CTYPES[v.dtype.name] * v.size)(),
    "ctypes bytes": lambda v: (ctypes.c_uint8 * v.nbytes)(),
}


def contents(target):
    return memoryview(target).tobytes()


@cells("data_type", DATA_TYPES)
@cells("form", TARGETS)
async def test_a_read_fills(context, form, data_type):
    values = extremes(data_type)
    buffer, target = await filled(context, values, data_type), TARGETS[form](values)

    assert await context.read_buffer(buffer, out=target) is None

    assert contents(target) == values.tobytes()


@cells("data_type", DATA_TYPES)
@cells("target", [lambda t: np.zeros((), t), lambda t: np.zeros(1, t)], ids=["0-d", "one element"])
async def test_a_read_of_a_scalar_fills(context, target, data_type):
    buffer, out = await filled(context, 42, data_type), target(data_type)
    await context.read_buffer(buffer, out=out)
    assert out.item() == 42


@settings(derandomize=True, max_examples=50)
@given(st.binary(min_size=1, max_size=64), st.integers(0, 9), st.integers(0, 9))
def test_any_contiguous_piece_of_memory_is_filled_and_nothing_around_it(options, data, before, after):
    memory = bytearray(b"." * (before + len(data) + after))

    async def read():
        async with open_ml() as ml:
            context = await ml.create_context(**options)
            buffer = await filled(context, np.frombuffer(data, np.uint8), "uint8")
            await context.read_buffer(buffer, out=memoryview(memory)[before : before + len(data)])

    trio.run(read)
    assert memory == b"." * before + data + b"." * after


# --- refused at the call ---------------------------------------------------------------------------------------------


def released():
    view = memoryview(bytearray(16))
    view.release()
    return view


def read_only():
    target = np.zeros(4, np.float32)
    target.flags.writeable = False
    return target


REFUSED = {
    "bytes": (lambda: bytes(16), "read-only; it must be writable"),
    "a memoryview of bytes": (lambda: memoryview(bytes(16)), "read-only; it must be writable"),
    "a read-only memoryview": (lambda: memoryview(bytearray(16)).toreadonly(), "read-only; it must be writable"),
    "a read-only array": (read_only, "read-only; it must be writable"),
    "a broadcast array": (lambda: np.broadcast_to(np.float32(0), 4), "read-only|not contiguous"),
    "a strided array": (lambda: np.zeros(8, np.float32)[::2], "not contiguous; it must be C-contiguous"),
    "a reversed array": (lambda: np.zeros(4, np.float32)[::-1], "not contiguous; it must be C-contiguous"),
    "a strided memoryview": (lambda: memoryview(bytearray(32))[::2], "not contiguous; it must be C-contiguous"),
    "the other byte order": (lambda: np.zeros(4, F32.dtype.newbyteorder()), "byte order of .f4"),
    "one byte too many": (lambda: bytearray(17), "17 bytes.*exactly 16"),
    "one byte too few": (lambda: bytearray(15), "15 bytes.*exactly 16"),
    "one element too many": (lambda: np.zeros(5, np.float32), "20 bytes.*exactly 16"),
    "one element too few": (lambda: np.zeros(3, np.float32), "12 bytes.*exactly 16"),
    "no bytes": (bytearray, "0 bytes.*exactly 16"),
    "another shape": (lambda: np.zeros((2, 2), np.float32), r"shape \[2, 2\]; it must be \[4\]"),
    "integers": (lambda: np.zeros(4, np.int32), "int32; they must be float32"),
    "longer floats": (lambda: np.zeros(2), "float64; they must be float32"),
    "bools": (lambda: np.zeros(16, bool), "bool; they must be float32"),
    "objects": (lambda: np.zeros(4, object), "object"),
    "an array.array of integers": (lambda: array.array("i", bytes(16)), "int32; they must be float32"),
    "a released memoryview": (released, "released memoryview"),
    "a list": (lambda: [0.0] * 4, "list"),
    "a number": (lambda: 0, "int"),
    "a str": (lambda: " " * 16, "str"),
    "an object": (object, "object"),
}


@cells("what", REFUSED)
async def test_a_read_is_refused_into(context, what):
    make, words = REFUSED[what]
    buffer, target = await filled(context, F32), make()

    promise = context.read_buffer(buffer, out=target)

    assert promise.state == "rejected"
    with pytest.raises(TypeError, match=rf"^read_buffer\(\).*({words})") as caught:
        await promise
    assert caught.type is TypeError
    out = np.zeros(4, np.float32)
    await context.read_buffer(buffer, out=out)
    np.testing.assert_array_equal(out, F32)


async def test_an_array_in_fortran_order_is_refused(context):
    buffer = await filled(context, np.zeros((2, 3)))
    with pytest.raises(TypeError, match="not contiguous; it must be C-contiguous"):
        await context.read_buffer(buffer, out=np.zeros((2, 3), np.float32, order="F"))


async def test_a_numpy_scalar_is_refused_because_it_cannot_be_written(context):
    with pytest.raises(TypeError, match="read-only; it must be writable"):
        await context.read_buffer(await filled(context, 1), out=np.float32(0))


# --- while the read is pending ---------------------------------------------------------------------------------------


async def test_the_target_stays_the_callers_while_the_read_is_pending(context):
    buffer, out = await filled(context, F32), bytearray(16)
    context.device_timeline.pause()
    promise = context.read_buffer(buffer, out=out)
    out[:] = b"x" * 16
    out.extend(b"y")
    out.pop()
    context.device_timeline.resume()
    await promise
    assert out == F32.tobytes()


def release(view):
    view.release()


def shrink(target):
    del target[-1]


def freeze(target):
    target.flags.writeable = False


def resize(target):
    target.resize(3, refcheck=False)


GONE = {
    "a memoryview is released": (lambda: memoryview(bytearray(16)), release, "released memoryview"),
    "a bytearray shrinks": (lambda: bytearray(16), shrink, "15 bytes"),
    "a bytearray is emptied": (lambda: bytearray(16), bytearray.clear, "0 bytes"),
    "a bytearray grows": (lambda: bytearray(16), lambda target: target.append(0), "17 bytes"),
    "an array.array shrinks": (lambda: array.array("f", [0] * 4), shrink, "12 bytes"),
    "an array becomes read-only": (lambda: np.zeros(4, np.float32), freeze, "read-only"),
    "an array is resized": (lambda: np.zeros(4, np.float32), resize, "12 bytes"),
}


@pytest.mark.parametrize("what", GONE)
async def test_a_pending_read_is_rejected_with_type_error_when(context, what):
    make, change, words = GONE[what]
    buffer, target = await filled(context, F32), make()
    context.device_timeline.pause()
    promise, memory = context.read_buffer(buffer, out=target), memoryview(target).obj
    change(target)
    assert promise.state == "pending"
    before = contents(memory)
    context.device_timeline.resume()

    with pytest.raises(
        TypeError, match=rf"^read_buffer\(\): out changed while the read was pending:.*{words}"
    ) as caught:
        await promise

    assert caught.type is TypeError
    assert contents(memory) == before
    np.testing.assert_array_equal(await context.read_buffer(buffer), F32)
    buffer.destroy()
    assert promise.state == "rejected"


async def test_a_read_of_a_destroyed_buffer_writes_nothing(context):
    buffer, out = await filled(context, F32), np.full(4, -1, np.float32)
    buffer.destroy()
    with pytest.raises(DestroyedBufferError):
        await context.read_buffer(buffer, out=out)
    np.testing.assert_array_equal(out, [-1] * 4)
