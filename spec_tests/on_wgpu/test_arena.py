"""The memory of intermediates on the GPU: one arena, bound as WebGPU permits."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_tests.support.backends import needs_adapter
from spec_tests.support.binding_rules import broken_rules
from spec_tests.support.both_devices import check_both
from spec_tests.support.stand_ins import noted
from webnn_py.devices.wgpu.adapters import choose
from webnn_py.devices.wgpu.codegen.module import declare
from webnn_py.devices.wgpu.passes.arena import BufferRange, place_blocks
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.runtime import executable

LARGEST = 4096


def block(byte_length=100):
    return Buffer("block", byte_length)


def kernel(reads, writes):
    return Kernel("kernel", "", tuple(reads), tuple(writes), (1, 1, 1))


def allocate(byte_length, label):
    return SimpleNamespace(size=byte_length, label=label)


@st.composite
def kernel_lists(draw):
    """Kernels that read what earlier ones have written, inputs and constants, some of it twice."""
    values = [Buffer("input", 64), Buffer("constant", 64)]
    kernels = []
    for _ in range(draw(st.integers(1, 20))):
        reads = draw(st.lists(st.sampled_from(values), max_size=4))
        outputs = st.builds(Buffer, st.sampled_from(["block", "block", "block", "output"]), st.integers(1, LARGEST))
        writes = draw(st.lists(outputs, min_size=1, max_size=2))
        kernels.append(kernel(reads, writes))
        values += writes
    return kernels


def ranges_of(kernel, places):
    """Return the ranges that a kernel binds; buffers that are no blocks have their own memory."""
    return [
        places.get(buffer, BufferRange(buffer, 0, buffer.byte_length)) for buffer in (*kernel.reads, *kernel.writes)
    ]


@given(kernel_lists())
def test_every_kernel_binds_what_webgpu_lets_it_bind(kernels):
    places = place_blocks(kernels, LARGEST, allocate)
    for step, item in enumerate(kernels):
        assert broken_rules(ranges_of(item, places), item.writable) == [], f"kernel {step}"


@given(kernel_lists())
def test_what_is_needed_later_is_not_written_over(kernels):
    places = place_blocks(kernels, LARGEST, allocate)
    held = {}
    for step, item in enumerate(kernels):
        for buffer in item.reads:
            if buffer.kind == "block":
                place = places[buffer]
                span = range(place.offset, place.offset + buffer.byte_length)
                assert all(held[id(place.buffer), byte] is buffer for byte in span), f"kernel {step}"
        for buffer in item.writes:
            if buffer.kind == "block":
                place = places[buffer]
                for byte in range(place.offset, place.offset + place.byte_length):
                    held[id(place.buffer), byte] = buffer


@given(kernel_lists())
def test_every_block_has_its_bytes_within_a_buffer_that_the_adapter_can_have(kernels):
    places = place_blocks(kernels, LARGEST, allocate)
    blocks = {buffer for item in kernels for buffer in (*item.reads, *item.writes) if buffer.kind == "block"}
    assert places.keys() == blocks
    for buffer, place in places.items():
        assert place.byte_length >= buffer.byte_length
        assert 0 <= place.offset <= place.offset + place.byte_length <= place.buffer.size <= LARGEST


def test_what_several_kernels_write_one_after_the_other_lies_in_one_buffer():
    blocks = [block(1000) for _ in range(5)]
    kernels = [kernel(pair[:1], pair[1:]) for pair in pairwise(blocks)]
    places = place_blocks(kernels, LARGEST, allocate)
    (arena,) = {id(place.buffer): place.buffer for place in places.values()}.values()
    assert arena.size == 1024 + 1024, "two of them are needed at a time"


def test_what_does_not_fit_into_one_buffer_takes_another():
    blocks = [block(3000) for _ in range(3)]
    places = place_blocks([kernel([], blocks)], LARGEST, allocate)
    assert [place.offset for place in places.values()] == [0, 0, 0]
    assert len({id(place.buffer) for place in places.values()}) == 3


def test_blocks_of_kernels_that_read_one_twice_share_memory_when_they_are_needed_at_different_times():
    blocks = [block(size) for size in (100, 200, 300, 400)]
    kernels = [kernel([], blocks[:1])]
    kernels += [kernel([one, one], [other]) for one, other in pairwise(blocks)]
    places = place_blocks(kernels, LARGEST, allocate)
    buffers = [places[item].buffer for item in blocks]
    assert [buffer.label for buffer in buffers] == ["intermediates", *["intermediate apart"] * 3]
    assert buffers[1] is buffers[3]
    assert buffers[1] is not buffers[2]


GIVEN, CONSTANT, RESULT, A, B = Buffer("input", 4), Buffer("constant", 4), Buffer("output", 4), block(), block()


@pytest.mark.parametrize(
    ("reads", "writes", "expected"),
    [
        ([GIVEN, A, CONSTANT], [B], [False, True, False, True]),
        ([GIVEN, A], [RESULT], [False, False, True]),
        ([GIVEN, GIVEN], [B], [False, False, True]),
        ([A, A], [B], [False, False, True]),
        ([A], [RESULT, B], [True, True, True]),
        ([], [B], [True]),
    ],
    ids=["block and others", "into an output", "input twice", "block twice", "into both", "nothing"],
)
def test_blocks_are_bound_for_writing_where_another_is_written(reads, writes, expected):
    assert list(kernel(reads, writes).writable) == expected
    text = declare([(buffer, "b", "f32") for buffer in reads], [(buffer, "o", "f32") for buffer in writes])
    assert ["read_write" in line for line in text.splitlines()] == expected


@pytest.mark.parametrize(
    ("one", "other", "writable", "problem"),
    [
        ((0, 256), (256, 256), (True, True), None),
        ((0, 256), (0, 256), (False, False), None),
        ((0, 256), (256, 256), (False, True), "for reading and for writing"),
        ((0, 257), (256, 256), (True, True), "overlap"),
        ((256, 32), (0, 512), (True, True), "overlap"),
        ((0, 32), (32, 32), (True, True), "not aligned"),
    ],
)
def test_a_kernel_that_binds_what_webgpu_refuses_fails_under_every_test(one, other, writable, problem):
    memory = allocate(1024, "memory")
    ranges = [BufferRange(memory, *one), BufferRange(memory, *other)]
    found = broken_rules(ranges, writable)
    if problem is None:
        assert found == []
        return
    assert [problem in words for words in found] == [True]
    twice = SimpleNamespace(label="twice", writable=writable)
    with pytest.raises(AssertionError, match=f"twice: .*{problem}"):
        executable.WgpuGraph.bind(None, twice, ranges)


X = np.random.default_rng(3).standard_normal((16, 12)).astype(np.float32)


def residual(b, x):
    """Blocks that are read again three kernels later."""
    for _ in range(3):
        y = b.softmax(x, 1)
        x = b.add(b.softmax(b.cumulative_sum(y, 1), 0), y)
    return x


def read_in_two_ways(b, x):
    """One kernel reads vec4s of a block and elements of it, and writes another block."""
    y = b.softmax(x, 1)
    z = b.add(b.slice(y, [0, 0], [16, 8]), b.slice(y, [0, 1], [16, 8]))
    return b.softmax(b.cumulative_sum(z, 1), 1)


def multiplied_by_itself(b, x):
    y = b.softmax(x, 1)
    return b.softmax(b.matmul(y, b.transpose(y)), 1)


@pytest.fixture
def labels(monkeypatch):
    """The labels of the memory that graphs take for intermediates."""
    return noted(monkeypatch, executable.WgpuGraph, "allocate", lambda _graph, _byte_length, label: label)


@needs_adapter
@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (residual, ["intermediates"]),
        (multiplied_by_itself, ["intermediates"]),
        (read_in_two_ways, ["intermediate apart", "intermediates"]),
    ],
)
async def test_intermediates_lie_in_one_buffer_but_for_what_is_read_in_two_ways(ml, labels, draw, expected):
    await check_both(ml, [X], draw, rtol=1e-5)
    assert labels == expected


@needs_adapter
async def test_intermediates_that_one_buffer_has_no_room_for_lie_in_several(ml, labels, monkeypatch):
    limits = []

    def place_in_small_buffers(kernels, largest, allocate):
        limits.append(largest)
        return place_blocks(kernels, X.nbytes, allocate)

    monkeypatch.setattr(executable, "place_blocks", place_in_small_buffers)
    await check_both(ml, [X], residual, rtol=1e-5)
    assert limits == [choose("default", software=True).limits["max-buffer-size"]]
    assert len(labels) > 1
