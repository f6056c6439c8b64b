"""Attention to a cache on a GPU: only the keys that are there are read, split among workgroups where there are many."""

import numpy as np
import pytest

from spec_tests.onnx_models.rules.random_attention import floats
from spec_tests.onnx_models.single_node import assert_same, expected, microsoft, run
from spec_tests.support.stand_ins import noted, returned
from webnn_py import MLGraphBuilder
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.devices.wgpu.codegen.attention import cached
from webnn_py.devices.wgpu.lowering import GraphLowering
from webnn_py.onnx_models import OnnxModel

CAPACITY = 160
LENGTHS = (1, 15, 16, 17, CAPACITY - 1, CAPACITY)
HEADS, KEY_HEADS, SIZE = 6, 2, 16


@pytest.fixture
async def gpu_context(ml, change_features):
    """A context whose GPU 64 workgroups keep busy."""
    change_features(processors=64)
    return await ml.create_context(backend="wgpu")


@pytest.fixture
def tiles(monkeypatch):
    """Return the tiles of the kernels that are written."""
    return returned(monkeypatch, cached, "cached_tile")


def decode(lengths, *, new=1, unused=0.0, seed=3, heads=(HEADS, KEY_HEADS), size=SIZE, **attributes):
    """Return a step of samples that have so many keys with the new ones, in caches with ``unused`` behind these."""
    rng = np.random.default_rng(seed)
    heads, key_heads = heads
    batch = len(lengths)
    caches = [floats(rng, batch, key_heads, CAPACITY, size) for _ in range(2)]
    for cache in caches:
        for sample, length in enumerate(lengths):
            cache[sample, :, max(0, length - new) :] = unused
    rows = [floats(rng, batch, new, count * size) for count in (heads, key_heads, key_heads)]
    angles = floats(rng, CAPACITY, size // 2), floats(rng, CAPACITY, size // 2)
    last, total = np.array(lengths, np.int32) - 1, np.array(max(lengths), np.int32)
    how = {"num_heads": heads, "kv_num_heads": key_heads, "do_rotary": 1, **attributes}
    return microsoft("GroupQueryAttention", *rows, *caches, last, total, *angles, outputs=3, **how)[0]


async def assert_exact(context, case, **finite):
    """Compare with onnxruntime; ``finite`` makes the same case without what must not be read."""
    wanted = expected(decode(**finite) if finite else case)
    assert_same(await run(context, case.model(), case.feeds), wanted, relative=1e-4, absolute=1e-4)


async def test_a_graph_is_exact_at_all_lengths(gpu_context, tiles):
    builder = MLGraphBuilder(gpu_context)
    graph = await builder.build(OnnxModel.load(decode([1]).model()).convert(builder))
    (tile,) = tiles
    assert tile.splits == -(-CAPACITY // tile.keys) > 1
    for length in LENGTHS:
        case = decode([length], unused=np.nan)
        outputs = await compute(gpu_context, graph, case.feeds)
        assert_same(outputs, expected(decode([length])), relative=1e-4, absolute=1e-4)
    graph.destroy()


async def compute(context, graph, feeds):
    """Run a graph with buffers of its own, and return its outputs in order."""
    inputs, outputs = {}, {}
    for name, item in graph.input_descriptors.items():
        inputs[name] = await context.create_buffer(data_type=item.data_type, shape=item.shape, writable=True)
        context.write_buffer(inputs[name], feeds[name])
    for name, item in graph.output_descriptors.items():
        outputs[name] = await context.create_buffer(data_type=item.data_type, shape=item.shape, readable=True)
    context.dispatch(graph, inputs, outputs)
    found = [await context.read_buffer(outputs[name]) for name in graph.output_descriptors]
    for buffer in (*inputs.values(), *outputs.values()):
        buffer.destroy()
    return found


FORMS = [
    {"lengths": (40, 160, 3)},
    {"lengths": (150,), "local_window_size": 20},
    {"lengths": (150,), "local_window_size": 70, "softcap": 1.5, "smooth_softmax": 1},
    {"lengths": (90,), "new": 5, "local_window_size": 33},
    {"lengths": (70,), "new": 4, "causal": 0, "heads": (2, 2), "size": 48},
    {"lengths": (100,), "heads": (3, 1), "size": 80, "rotary_interleaved": 1},
    {"lengths": (60,), "heads": (10, 1), "size": 192},
    {"lengths": (100,), "heads": (2, 1), "size": 528},  # drawn with masks
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS)
async def test_what_lies_beyond_the_keys_is_not_read(gpu_context, tiles, form):
    is_drawn = form.get("size", 0) > 512
    unused = 0.0 if is_drawn else np.inf
    await assert_exact(gpu_context, decode(unused=unused, **form), **form)
    assert bool(tiles) != is_drawn


async def test_prompts_are_attended_to_in_blocks(gpu_context, tiles):
    await assert_exact(gpu_context, decode([20, 20], new=20))
    assert tiles[0].blocks > 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS[:-1])
async def test_workgroup_memory_takes_the_place_of_subgroups(ml, change_features, form):
    change_features(subgroups=False, max_workgroup_storage=16384)
    gpu_context = await ml.create_context(backend="wgpu")
    await assert_exact(gpu_context, decode(unused=np.inf, **form), **form)


async def test_few_buffers_take_more_kernels(ml, change_features, monkeypatch):
    change_features(max_storage_buffers=8)
    kernels = noted(monkeypatch, GraphLowering, "emit", lambda _lowering, kernel: kernel)
    gpu_context = await ml.create_context(backend="wgpu")
    form = {"lengths": (150, 30), "softcap": 1.5}
    await assert_exact(gpu_context, decode(**form))
    assert sum("(rows)" in kernel.label for kernel in kernels) == 3
    assert max(len({*kernel.reads, *kernel.writes}) for kernel in kernels) <= 8


async def test_a_step_is_two_kernels_where_the_cache_is_updated_in_place(gpu_context, tiles):
    case = decode([100])
    builder = MLGraphBuilder(gpu_context)
    graph = await builder.build(OnnxModel.load(case.model()).convert(builder))
    kernels = graph.handle.compiled.plan.kernels
    assert len(kernels) == 2 + len(graph.in_place), kernels
    graph.destroy()


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
async def test_keys_and_values_that_are_not_finite_reach_the_queries_that_see_them(gpu_context, special):
    case = decode([100, 100])
    caches = [item.copy() for item in case.inputs[3:5]]
    caches[0][0, 0, 7], caches[1][1, 1, 9] = special, special
    feeds = {**case.feeds, "x3": caches[0], "x4": caches[1]}
    output = (await run(gpu_context, case.model(), feeds))[0].reshape(2, HEADS, SIZE)
    is_finite = np.isfinite(output).all(2)
    half = HEADS // KEY_HEADS
    assert is_finite.tolist() == [[False] * half + [True] * half, [True] * half + [False] * half]


async def test_without_the_kernels_results_are_the_same(gpu_context, tiles):
    with passes_left_out("cached-attention"):
        await assert_exact(gpu_context, decode([40, 100]))
    assert not tiles


@pytest.mark.parametrize(("new", "last", "total"), [(1, CAPACITY, CAPACITY + 1), (20, 2**31 - 1, CAPACITY)])
async def test_lengths_beyond_the_cache_give_nan(gpu_context, tiles, new, last, total):
    case = decode([CAPACITY], new=new)
    feeds = {**case.feeds, "x5": np.array([last], np.int32), "x6": np.array(total, np.int32)}
    output, keys, _ = await run(gpu_context, case.model(), feeds)
    assert np.isnan(output).all()
    assert_same([keys], [case.inputs[3]])
    assert tiles
