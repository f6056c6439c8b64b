"""Data for ``write_buffer()``, ``constant()`` and ``create_constant_buffer()``: accepted, refused and copied."""

import array
import ctypes

import numpy as np
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from spec_tests.support.cells import Cells, cells
from spec_tests.support.host_data import FORMS, WAYS_IN, extremes, write
from spec_tests.support.watched_device import quiet
from webnn_py import open_ml
from webnn_py.core.descriptors import DATA_TYPES

# --- accepted --------------------------------------------------------------------------------------------------------


@cells("data_type", DATA_TYPES)
async def test_data_of_every_form_arrive_bit_by_bit(context, way_in, data_type):
    values = extremes(data_type)
    with Cells() as run:
        for form, make in FORMS.items():
            with run.cell(form):
                arrived = await WAYS_IN[way_in](context, make(values), data_type, values.shape)
                assert (arrived.dtype, arrived.shape) == (values.dtype, values.shape)
                assert arrived.tobytes() == values.tobytes()


@cells("data_type", DATA_TYPES)
@cells(
    "form",
    [
        lambda v: v,
        lambda v: v[()],
        lambda v: v.reshape(1),
        lambda v: v.tobytes(),
        memoryview,
        lambda v: v.astype(v.dtype.newbyteorder()),
    ],
    ids=["a 0-d array", "a numpy scalar", "an array of one", "bytes", "a 0-d memoryview", "the other byte order"],
)
async def test_a_scalar_arrives_from(context, way_in, form, data_type):
    values = extremes(data_type)[0, 1].reshape(())

    arrived = await WAYS_IN[way_in](context, form(values), data_type, ())

    assert arrived.shape == ()
    assert arrived.tobytes() == values.tobytes()


async def test_bits_of_a_nan_arrive_as_they_are(context, way_in):
    bits = np.array([0x7FC00001, 0xFFC12345, 0x7F800001], np.uint32)
    arrived = await WAYS_IN[way_in](context, bits.view(np.float32), "float32", (3,))
    np.testing.assert_array_equal(arrived.view(np.uint32), bits)


@st.composite
def layouts(draw):
    """An array of any data type, rank, strides, order of axes and bytes."""
    shape = draw(npst.array_shapes(min_dims=0, max_dims=5, max_side=4))
    dtype = np.dtype(draw(st.sampled_from(DATA_TYPES))).newbyteorder(draw(st.sampled_from("<>")))
    array = np.frombuffer(draw(st.binary(min_size=2048, max_size=2048)), np.uint8)
    whole = tuple(size * draw(st.integers(1, 2)) + draw(st.integers(0, 1)) for size in shape)
    count = int(np.prod(whole)) * dtype.itemsize
    array = np.resize(array, count).view(dtype).reshape(whole)
    array = array[tuple(_slice(draw, full, size) for full, size in zip(whole, shape, strict=True))]
    return array.transpose(draw(st.permutations(range(len(shape)))))


def _slice(draw, full, size):
    step = draw(st.integers(1, max(1, (full - 1) // max(1, size - 1)))) if size > 1 else 1
    start = draw(st.integers(0, full - (size - 1) * step - 1))
    picked = slice(start, start + (size - 1) * step + 1, step)
    if not draw(st.booleans()):
        return picked
    last = start + (size - 1) * step
    return slice(last, start - 1 if start else None, -step)


@settings(derandomize=True)
@given(layouts(), st.sampled_from([lambda a: a, memoryview]))
def test_data_arrive_from_an_array_of_any_layout(options, source, form):
    async def there_and_back():
        async with open_ml() as ml:
            context = await ml.create_context(**options)
            return await write(context, form(source), source.dtype.newbyteorder("=").name, source.shape)

    arrived = trio.run(there_and_back)
    assert arrived.tobytes() == source.astype(source.dtype.newbyteorder("=")).tobytes()


# --- refused ---------------------------------------------------------------------------------------------------------


def released():
    view = memoryview(bytes(24))
    view.release()
    return view


REFUSED = {
    "None": (lambda: None, "NoneType"),
    "an int": (lambda: 24, "int"),
    "a float": (lambda: 1.0, "float"),
    "a str": (lambda: "x" * 24, "str"),
    "a list": (lambda: [[1.0, 2.0, 3.0]] * 2, "list"),
    "a tuple": (lambda: (1.0,) * 6, "tuple"),
    "a dict": (dict, "dict"),
    "a range": (lambda: range(6), "range"),
    "a generator": (lambda: (x for x in range(6)), "generator"),
    "an object": (object, "object"),
    "a type": (lambda: bytes, "type"),
    "a released memoryview": (released, "released memoryview"),
    "bools": (lambda: np.zeros((2, 3), bool), "bool"),
    "bools of 24 bytes": (lambda: np.zeros(24, bool), "bool"),
    "a memoryview of bools": (lambda: memoryview(bytes(24)).cast("?"), "bool"),
    "complex numbers": (lambda: np.zeros(3, np.complex64), "complex64"),
    "longer floats": (lambda: np.zeros((2, 3)), "float64"),
    "longer floats of 24 bytes": (lambda: np.zeros(3), "float64"),
    "shorter integers": (lambda: np.zeros(12, np.int16), "int16"),
    "shorter unsigned integers": (lambda: np.zeros(12, np.uint16), "uint16; they must be float32"),
    "objects": (lambda: np.full((2, 3), 1.0, object), "object"),
    "strings": (lambda: np.full((2, 3), "a"), "str"),
    "byte strings": (lambda: np.full(6, b"abcd"), "bytes"),
    "records": (lambda: np.zeros((2, 3), [("a", "<f4")]), "void"),
    "dates": (lambda: np.zeros(3, "datetime64[s]"), "datetime64"),
    "an array.array of doubles": (lambda: array.array("d", [1, 2, 3]), "float64"),
    "an array.array of signed bytes": (lambda: array.array("b", bytes(24)), "int8"),
    "a ctypes array of pointers": (ctypes.c_void_p * 3, "."),
    "a ctypes array of signed bytes": (ctypes.c_int8 * 24, "int8"),
    "a ctypes structure": (type("S", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_float * 6)]}), "."),
    "one element too many": (lambda: np.zeros(7, np.float32), "28 bytes.*exactly 24 bytes"),
    "one element too few": (lambda: np.zeros(5, np.float32), "20 bytes.*exactly 24 bytes"),
    "one byte too many": (lambda: bytes(25), "25 bytes.*exactly 24 bytes"),
    "one byte too few": (lambda: bytes(23), "23 bytes.*exactly 24 bytes"),
    "no bytes": (lambda: b"", "0 bytes.*exactly 24 bytes"),
    "no elements": (lambda: np.zeros((0, 3), np.float32), "0 bytes.*exactly 24 bytes"),
    "twice the elements": (lambda: np.zeros((2, 2, 3), np.float32), "48 bytes.*exactly 24 bytes"),
    "a scalar": (lambda: np.float32(1), "4 bytes.*exactly 24 bytes"),
    "the shape transposed": (lambda: np.zeros((3, 2), np.float32), r"shape \[3, 2\]; it must be \[2, 3\], or flat"),
    "one axis more": (lambda: np.zeros((1, 2, 3), np.float32), r"shape \[1, 2, 3\]; it must be \[2, 3\], or flat"),
    "one axis longer": (lambda: np.zeros((6, 1), np.float32), r"shape \[6, 1\]; it must be \[2, 3\], or flat"),
}


@cells("what", REFUSED)
async def test_wrong_data_are_refused(context, way_in, what):
    make, words = REFUSED[what]
    with pytest.raises(TypeError, match=rf"{way_in}\(\).*{words}") as caught:
        await WAYS_IN[way_in](context, make(), "float32", (2, 3))
    assert caught.type is TypeError
    values = extremes("float32")
    assert (await WAYS_IN[way_in](context, values, "float32", (2, 3))).tobytes() == values.tobytes()


@cells("wanted", DATA_TYPES)
@cells("given_type", DATA_TYPES)
async def test_typed_data_of_one_data_type_are_refused_for_another(context, way_in, wanted, given_type):
    shape, source = (8 // np.dtype(wanted).itemsize,), np.ones(8 // np.dtype(given_type).itemsize, given_type)
    if given_type in {wanted, "uint8"}:
        assert (await WAYS_IN[way_in](context, source, wanted, shape)).tobytes() == source.tobytes()
        return
    with pytest.raises(TypeError, match=rf"{way_in}\(\): data are {given_type}; they must be {wanted}, or bytes"):
        await WAYS_IN[way_in](context, source, wanted, shape)


async def test_unsigned_shorts_alone_are_taken_for_float16_in_the_byte_order_of_the_array(context, way_in):
    halves = np.array([1.5, -2, np.inf], np.float16)
    for source in (halves.view(np.uint16), halves.view(np.uint16).astype(">u2"), halves.view(np.uint16).astype("<u2")):
        arrived = await WAYS_IN[way_in](context, source, "float16", (3,))
        np.testing.assert_array_equal(arrived, halves)
    with pytest.raises(TypeError, match=rf"{way_in}\(\): data are int16; they must be float16"):
        await WAYS_IN[way_in](context, np.zeros(3, np.int16), "float16", (3,))


# --- copied at the call ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["a numpy array", "a bytearray", "a typed memoryview", "an array.array"])
async def test_a_later_change_of_the_source_is_not_seen(context, way_in, form):
    values = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    source = FORMS[form](values.copy())
    context.device_timeline.pause()
    arrived = None

    async def arrive():
        nonlocal arrived
        arrived = await WAYS_IN[way_in](context, source, "float32", (2, 3))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(arrive)
        await quiet(context)
        if way_in == "write_buffer":
            await context.device_timeline.step()
            await quiet(context)
        memoryview(source).cast("B")[:] = bytes(24)
        context.device_timeline.resume()
    np.testing.assert_array_equal(arrived, values)


async def test_a_source_may_go_before_the_device_has_begun(context):
    buffer = await context.create_buffer(data_type="float32", shape=[2], readable=True, writable=True)
    context.device_timeline.pause()
    resized, released_view = bytearray(8), memoryview(bytes(8))
    for source in (resized, released_view, array.array("f", [1, 2])):
        context.write_buffer(buffer, source)
    resized.clear()
    released_view.release()
    assert context.statistics().queued_bytes == 24
    context.device_timeline.resume()
    np.testing.assert_array_equal(await context.read_buffer(buffer), [1, 2])
