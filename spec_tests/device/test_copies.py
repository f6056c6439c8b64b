"""``copy_buffer()`` and ``clear_buffer()`` change buffers on the device, without the host."""

import re

import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.cells import cells
from spec_tests.support.drawing import build_add_one
from spec_tests.support.own_statistics import own_statistics
from webnn_py import DestroyedBufferError, UnknownError
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.devices.copying import CopiesThroughHost


@pytest.fixture
def through_the_host(monkeypatch):
    """Let a device copy through the host, as one that cannot copy itself."""
    monkeypatch.setattr("webnn_py.devices.copying.copies_of", CopiesThroughHost)


@pytest.fixture(params=["its own copies", "through the host"])
def way(request):
    """Let a device copy itself, or through the host."""
    if request.param == "through the host":
        request.getfixturevalue("through_the_host")
    return request.param


def counting(size, data_type, start=1):
    return (np.arange(start, start + size) % 120).astype(data_type)


# --- copies --------------------------------------------------------------------------------------------------------


@cells("data_type", DATA_TYPES)
async def test_a_copy_without_offsets_copies_everything(ml, options, way, data_type):
    context = await ml.create_context(**options)
    source, target = await filled(context, counting(7, data_type), data_type), await zeroed(context, [7, 1], data_type)
    copy_buffer(context, source, target)
    np.testing.assert_array_equal(await context.read_buffer(target), counting(7, data_type)[:, None])
    np.testing.assert_array_equal(await context.read_buffer(source), counting(7, data_type))


async def check_copies(context, sizes, copies, data_type="int8"):
    """Copy (source_offset, destination_offset, count) one after the other, and compare with numpy."""
    expected_source, expected = counting(sizes[0], data_type), counting(sizes[1], data_type, 50)
    source, target = await filled(context, expected_source, data_type), await filled(context, expected, data_type)
    for begin, to, count in copies:
        number = sizes[0] - begin if count is None else count
        copy_buffer(context, source, target, source_offset=begin, destination_offset=to, count=count)
        expected[to : to + number] = expected_source[begin : begin + number]
    np.testing.assert_array_equal(await context.read_buffer(target), expected, err_msg=str(copies))
    np.testing.assert_array_equal(await context.read_buffer(source), expected_source)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("data_type", ["int8", "float16", "float32", "int64"])
async def test_elements_go_from_any_place_to_any_place(ml, options, way, data_type):
    context = await ml.create_context(**options)
    for begin in range(6):
        for to in range(6):
            for count in {1, 2, 3, 4, 5, 11 - begin}:
                await check_copies(context, (11, 17), [(begin, to, count)], data_type)
        await check_copies(context, (11, 17), [(begin, 5, None)], data_type)


@cells("data_type", ["uint8", "float16"])
async def test_a_copy_to_the_very_end_changes_nothing_before_it(context, data_type):
    for size in range(1, 10):
        await check_copies(context, (size, 37), [(0, 37 - size, size), (size // 2, 0, 1)], data_type)


async def test_long_copies_at_odd_places(context):
    size = 3_000_001
    await check_copies(context, (size, size + 5), [(1, 2, size - 3), (0, 5, None), (17, 0, 100)], "uint8")
    await check_copies(context, (size, size + 5), [(4, 8, size - 5)], "uint8")


@cells("data_type", ["int8", "float16", "float32"])
@cells("places", [(0, 8, 8), (9, 2, 5), (1, 6, 5), (7, 0, 7), (0, 15, 1), (2, 4, 2)], ids=repr)
async def test_a_part_of_a_buffer_is_copied_to_another_part_of_it(ml, options, way, data_type, places):
    context = await ml.create_context(**options)
    begin, to, count = places
    expected = counting(16, data_type)
    buffer = await filled(context, expected, data_type)
    copy_buffer(context, buffer, buffer, source_offset=begin, destination_offset=to, count=count)
    expected[to : to + count] = expected[begin : begin + count].copy()
    np.testing.assert_array_equal(await context.read_buffer(buffer), expected)


async def test_scalars_and_constants_are_copied(context):
    scalar, weights = await filled(context, 7.0), await constant(context, [1, 2, 3])
    target = await zeroed(context, [2, 2])
    copy_buffer(context, weights, target)
    copy_buffer(context, scalar, target, destination_offset=3)
    np.testing.assert_array_equal(await context.read_buffer(target), [[1, 2], [3, 7]])


async def test_no_elements_are_copied_where_there_are_none_to_copy(context):
    source, target = await filled(context, [1, 2]), await filled(context, [3, 4])
    await context.drain()
    context.device_timeline.pause()
    copy_buffer(context, source, target, count=0)
    copy_buffer(context, source, target, source_offset=2)
    copy_buffer(context, source, source, count=0)
    assert context.statistics().queued_operations == 0
    context.device_timeline.resume()
    np.testing.assert_array_equal(await context.read_buffer(target), [3, 4])


@cells("data_type", DATA_TYPES)
async def test_a_cleared_buffer_holds_zeros(ml, options, way, data_type):
    context = await ml.create_context(**options)
    buffer = await filled(context, counting(7, data_type), data_type)
    clear_buffer(context, buffer)
    np.testing.assert_array_equal(await context.read_buffer(buffer), np.zeros(7))


async def test_copies_need_no_flags_and_no_host(context):
    flagless = [await context.create_buffer(data_type="float32", shape=[3]) for _ in range(2)]
    source, target = await filled(context, [1, 2, 3]), await zeroed(context, [3])
    await context.drain()
    before = own_statistics(context)
    copy_buffer(context, source, flagless[0])
    clear_buffer(context, flagless[1])
    copy_buffer(context, flagless[0], flagless[1], source_offset=1, count=2)
    copy_buffer(context, flagless[1], target)
    await context.drain()
    assert own_statistics(context) == before
    np.testing.assert_array_equal(await context.read_buffer(target), [2, 3, 0])


@pytest.mark.usefixtures("through_the_host")
async def test_a_device_that_cannot_copy_counts_what_goes_through_the_host(ml, options):
    context = await ml.create_context(**options)
    source, target = await filled(context, [1, 2, 3]), await zeroed(context, [3])
    await context.drain()
    counted = [context.statistics().host_copies]
    for act in (
        lambda: copy_buffer(context, source, target),
        lambda: copy_buffer(context, source, target, count=2),
        lambda: clear_buffer(context, target),
    ):
        act()
        await context.drain()
        counted.append(context.statistics().host_copies)
    assert np.diff(counted).tolist() == [2, 3, 1]


async def test_a_copy_of_another_packages_device(ml):
    context = await ml.create_context(backend="reference")
    await check_copies(context, (5, 8), [(1, 2, 3), (0, 7, 1)], "float32")


# --- order ---------------------------------------------------------------------------------------------------------


async def test_copies_run_in_their_turn(context):
    graph = await build_add_one(context, [3])
    a, b, c = [await zeroed(context, [3]) for _ in range(3)]
    context.write_buffer(a, np.array([1, 2, 3], np.float32))
    for _ in range(40):  # more than are submitted together
        context.dispatch(graph, {"x": a}, {"y": b})
        copy_buffer(context, b, a, count=2)
        copy_buffer(context, a, c, source_offset=1, destination_offset=1, count=1)
    first = context.read_buffer(a)
    clear_buffer(context, a)
    copy_buffer(context, c, a, source_offset=1, count=1)
    context.write_buffer(c, np.array([9, 9, 9], np.float32))
    np.testing.assert_array_equal(await first, [41, 42, 3])
    np.testing.assert_array_equal(await context.read_buffer(a), [42, 0, 0])
    np.testing.assert_array_equal(await context.read_buffer(c), [9, 9, 9])


async def test_the_source_of_a_copy_may_be_destroyed_after_the_call(context):
    source, target = await filled(context, [1, 2, 3], "int8"), await zeroed(context, [4], "int8")
    copy_buffer(context, source, target, source_offset=1)
    source.destroy()
    np.testing.assert_array_equal(await context.read_buffer(target), [2, 3, 0, 0])


# --- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["copy", "clear"])
async def test_a_failed_copy_rejects_the_next_read_of_its_destination(context, fail, method):
    source, target = await filled(context, [1, 2]), await filled(context, [3, 4])
    fail(method, RuntimeError("the bus is down"))
    copy_buffer(context, source, target) if method == "copy" else clear_buffer(context, target)
    with pytest.raises(UnknownError, match=rf"read_buffer\(\).*{method}_buffer\(\) failed: the bus is down"):
        await context.read_buffer(target)
    np.testing.assert_array_equal(await context.read_buffer(source), [1, 2])


async def test_a_copy_of_a_buffer_without_data_leaves_its_destination_without_and_does_not_run(device, context):
    source, target = await filled(context, [1, 2]), await filled(context, [3, 4])
    await context.drain()
    device.failing["write"] = RuntimeError("the bus is down")
    device.log.clear()
    context.write_buffer(source, np.ones(2, np.float32))
    copy_buffer(context, source, target, count=1)
    text = r"the source of a copy_buffer\(\) holds no data, because write_buffer\(\) failed: the bus is down"
    with pytest.raises(UnknownError, match=text):
        await context.read_buffer(target)
    assert device.log == ["write"]


async def test_only_a_whole_copy_gives_a_failed_destination_data_again(device, context, begin):
    source, target = await filled(context, [1, 2]), await filled(context, [3, 4])
    await context.drain()

    def fail_to_write():
        device.failing["write"] = RuntimeError("the bus is down")
        context.write_buffer(target, np.ones(2, np.float32))

    fail_to_write()
    begin("copy")
    copy_buffer(context, source, target, count=1)
    with pytest.raises(UnknownError, match="the bus is down"):
        await context.read_buffer(target)
    begin("copy")
    copy_buffer(context, source, target)
    np.testing.assert_array_equal(await context.read_buffer(target), [1, 2])
    fail_to_write()
    begin("clear")
    clear_buffer(context, target)
    np.testing.assert_array_equal(await context.read_buffer(target), [0, 0])


async def test_copies_are_dropped_when_the_context_is_lost(device, context):
    source, target = await filled(context, [1, 2]), await filled(context, [3, 4])
    await context.drain()
    context.device_timeline.pause()
    copy_buffer(context, source, target)
    clear_buffer(context, source)
    context.destroy()
    context.device_timeline.resume()
    await context.drain()
    assert not {"copy", "clear"} & set(device.log)
    for act in (lambda: copy_buffer(context, source, target), lambda: clear_buffer(context, source)):
        with pytest.raises(DestroyedBufferError, match="the context is lost"):
            act()


# --- refusals ------------------------------------------------------------------------------------------------------


REFUSED = [
    ({"source": 3}, r"copy_buffer\(\): source is 3; it must be an MLBuffer"),
    ({"destination": "target"}, r"copy_buffer\(\): destination is 'target'; it must be an MLBuffer"),
    ({"source": "foreign"}, r"copy_buffer\(\): <MLBuffer .*> belongs to another context"),
    ({"destination": "foreign"}, r"copy_buffer\(\): <MLBuffer .*> belongs to another context"),
    ({"destination": "constant"}, r"destination is <MLBuffer .*constant>, which is constant; it must not be"),
    ({"destination": "integers"}, r"source is float32 and destination int32; their data types must be the same"),
    ({"source_offset": 1.0}, r"source_offset is 1\.0; it must be an integer"),
    ({"destination_offset": -1}, r"destination_offset is -1; it must be from 0"),
    ({"count": True}, r"count is True; it must be an integer, not a bool"),
    ({"source_offset": 5}, r"source_offset is 5; the source has 4 elements"),
    ({"destination_offset": 7}, r"destination_offset is 7; the destination has 6 elements"),
    ({"count": 5}, r"5 elements from source_offset 0 are more than the source has: 4"),
    ({"source_offset": 2, "count": 3}, r"3 elements from source_offset 2 are more than the source has: 4"),
    ({"destination_offset": 3}, r"4 elements from destination_offset 3 are more than the destination has: 6"),
    ({"destination": "source"}, r"elements 0 to 4 are copied to 0 of the same buffer; the ranges must not overlap"),
    (
        {"destination": "source", "destination_offset": 1, "count": 2},
        r"elements 0 to 2 are copied to 1 of the same buffer",
    ),
    (
        {"destination": "source", "source_offset": 1, "count": 2},
        r"elements 1 to 3 are copied to 0 of the same buffer",
    ),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[str(changes) for changes, _ in REFUSED])
async def test_a_copy_that_does_not_fit_is_refused_before_anything_is_enqueued(ml, options, context, changes, words):
    other = await ml.create_context(**options)
    there = {
        "source": await filled(context, [1, 2, 3, 4]),
        "other": await filled(context, [5] * 6),
        "foreign": await zeroed(other, [6]),
        "constant": await constant(context, [0] * 6),
        "integers": await zeroed(context, [6], "int32"),
    }
    given = {"source": "source", "destination": "other", **changes}
    arguments = {name: there.get(value, value) if isinstance(value, str) else value for name, value in given.items()}
    await context.drain()
    with pytest.raises(TypeError, match=words) as caught:
        copy_buffer(context, arguments.pop("source"), arguments.pop("destination"), **arguments)
    assert re.match(r"copy_buffer\(\): ", str(caught.value))
    assert context.statistics().queued_operations == 0
    np.testing.assert_array_equal(await context.read_buffer(there["other"]), [5] * 6)


async def test_a_clear_of_a_wrong_buffer_is_refused(ml, options, context):
    fixed, gone = await constant(context, [1]), await zeroed(context, [1])
    gone.destroy()
    foreign = await zeroed(await ml.create_context(**options), [1])
    for buffer, words in (
        (fixed, "which is constant; it must not be"),
        (gone, r"is destroyed: destroy\(\) was called on the buffer"),
        (foreign, "belongs to another context"),
        (None, r"None given; it must be an MLBuffer"),
    ):
        with pytest.raises(TypeError, match=rf"clear_buffer\(\): .*{words}"):
            clear_buffer(context, buffer)
    with pytest.raises(DestroyedBufferError, match=r"copy_buffer\(\).*is destroyed"):
        copy_buffer(context, fixed, gone)
