"""Runs of small kernels become one, and their results stay the same, in whichever memory the intermediates are."""

import attrs
import numpy as np
import pytest

from spec_tests.support.both_devices import X, check_both
from webnn_py import MLGraphBuilder
from webnn_py.devices.wgpu import lowering
from webnn_py.devices.wgpu.codegen.joining.runs import LEAST_STEPS, joined
from webnn_py.devices.wgpu.codegen.joining.views import Kind, View, can_be_viewed, common, viewed

pytestmark = pytest.mark.sampled(1)

ROOM = 16384
BETWEEN = "var<workgroup> between"


@pytest.fixture
def room(request, monkeypatch):
    """Limits the workgroup's memory to a number of bytes; the joined kernels of the last graph."""
    kernels = []

    def join(before, features):
        limited = attrs.evolve(features, max_workgroup_storage=min(features.max_workgroup_storage, request.param))
        kernels[:] = joined(before, limited)
        return kernels

    monkeypatch.setattr(lowering, "joined", join)
    return kernels


def rows(b, x, count=LEAST_STEPS):
    for _ in range(count):
        x = b.softmax(x, 1)
    return x


def large(b, x):
    """By two kernels that are not small."""
    return b.reduce_max(b.cumulative_sum(b.expand(b.reshape(x, [8, 12, 1]), [8, 12, 500]), 2), axes=[2])


def mixed(b, x):
    """Whole and single elements, words, reductions along both axes, and steps that are used again."""
    y = x
    for index in range(2):
        y = b.softmax(b.mul(y, b.constant(np.full(1, 8 + index, np.float32))), 1)
        y = b.layer_normalization(y, axes=[0])
        y = b.sub(y, b.reduce_sum(y, axes=[1], keep_dimensions=True))
        y = b.transpose(b.cumulative_sum(b.softmax(b.transpose(y), 1), 0))
        y = b.concat([b.slice(y, [0, 3], [8, 9]), b.slice(y, [0, 0], [8, 3])], 1)
        y = b.gather(y, b.constant(np.array([3, 1, 0, 2, 7, 7, 5, 6], np.int32)))
    return y, b.reduce_max(y, axes=[0])


def with_outputs_in_between(b, x):
    results = []
    for index in range(LEAST_STEPS + 1):
        x = b.softmax(x, index % 2)
        if index % 3 == 0:
            results.append(x)
    return (*results, x)


def of_two_workgroups(b, x):
    x = b.concat([x] * 12, 0)
    for index in range(LEAST_STEPS // 2):
        x = b.cumulative_sum(b.softmax(x, 1), axis=index % 2)
    return x


@pytest.mark.parametrize(
    ("draw", "room", "arrays"),
    [
        (rows, 0, 0),
        (rows, 400, 1),
        (rows, 800, 2),
        (mixed, ROOM, 7),
        (with_outputs_in_between, ROOM, 2),
        (of_two_workgroups, 6000, 1),
        (of_two_workgroups, ROOM, 3),
    ],
    indirect=["room"],
)
async def test_runs_of_small_kernels_compute_what_they_would_alone(check_kernels, room, draw, arrays):
    await check_kernels(draw, 1)
    (kernel,) = room
    assert kernel.source.count(BETWEEN) == arrays
    assert ("storageBarrier" in kernel.source) == (arrays < 2 or draw is not rows)


@pytest.mark.parametrize("data_type", ["float16", "int8", "uint32"])
@pytest.mark.parametrize("room", [ROOM], indirect=True)
async def test_runs_of_any_data_type_do(ml, room, data_type):
    def draw(b, x):
        backwards = b.constant(np.arange(8, dtype=np.int32)[::-1].copy())
        for index in range(5):
            if data_type != "float16":  # what only moves elements sees words, which hold two of these
                x = b.gather(b.concat([b.slice(x, [0, 1], [8, 11]), b.slice(x, [0, 0], [8, 1])], 1), backwards)
            x = b.max(x, b.reduce_max(x, axes=[index % 2], keep_dimensions=True))
            x = b.min(x, b.constant(np.full(1, 3 - index, np.int64).astype(data_type)))
        return x

    await check_both(ml, [X.astype(data_type)], draw)
    assert any(BETWEEN in kernel.source for kernel in room)


@pytest.mark.parametrize("before", [lambda _b, x: x, large], ids=["input", "intermediate"])
async def test_what_is_only_read_may_be_seen_in_two_ways(check_kernels, before):
    def draw(b, x):
        x = before(b, x)
        flat = b.reshape(x, [96])
        return b.add(rows(b, x), b.reshape(b.concat([b.slice(flat, [1], [95]), b.slice(flat, [0], [1])], 0), [8, 12]))

    await check_kernels(draw, 1 if before is not large else 3)


async def test_short_runs_keep_the_kernels_that_other_graphs_have(check_kernels):
    await check_kernels(lambda b, x: rows(b, x, LEAST_STEPS - 1), LEAST_STEPS - 1)


async def test_a_large_kernel_ends_a_run(check_kernels):
    await check_kernels(lambda b, x: rows(b, large(b, rows(b, x))), 4)


async def test_a_joined_kernel_tells_what_it_computes(gpu):
    builder = MLGraphBuilder(gpu)
    x = builder.input("x", data_type="float32", shape=[4, 8])
    graph = await builder.build({"y": rows(builder, x, 9)})
    (kernel,) = (step.kernel for step in graph.handle.compiled._steps)
    assert kernel.label == "9 × softmax float32"
    assert [node.operator for node in kernel.nodes] == ["softmax"] * 9
    assert all(node.flops for node in kernel.nodes)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["vec4<f32>"], "vec4<f32>"),
        (["f32", "vec4<f32>"], "f32"),
        (["u32", "vec4<f32>", "vec2<u32>"], "u32"),
        (["f16", "vec4<f16>"], "f16"),
        (["f16", "u32"], None),
        (["i64", "u64"], None),
    ],
)
def test_an_array_holds_what_all_who_see_it_can_read(kinds, expected):
    held = common([Kind.from_text(kind) for kind in kinds])
    assert (held and held.text) == expected


def test_accesses_of_an_array_that_holds_something_else_become_calls():
    views = {"o": View("held", "u32", Kind("f32", 4)), "in0": View("other", "f32", Kind("f32", 4))}
    text = "let o1 = in0[a[i] + 1u].x; v.o[2] = 0.0; o[in0[0].y] = vec4<f32>(in0[b[i]]);"
    assert viewed(text, views) == (
        "let o1 = load_other_vec4_f32(u32(a[i] + 1u)).x; v.o[2] = 0.0; "
        "store_held_vec4_f32(u32(load_other_vec4_f32(u32(0)).y), vec4<f32>(load_other_vec4_f32(u32(b[i]))));"
    )


@pytest.mark.parametrize("text", ["o[i].x = 1.0;", "o[a[i]] += 1.0;", "p = &o;", "o[i] <<= 1u;"])
def test_parts_of_elements_cannot_be_stored_so(text):
    assert not can_be_viewed(text, ["o"])
    assert can_be_viewed(text, ["x"])
    assert can_be_viewed("o[i] = o[i] == o[j];", ["o"])
