"""Kernels of graphs with named dimensions are written for many sizes at once, and the sets that are used are kept."""

import numpy as np
import pytest

import webnn_py
from spec_tests.support.computing import run_graph
from spec_tests.support.stand_ins import failing, noted
from webnn_py import MLDynamicDimension, MLGraphBuilder, OperationError, UnknownError
from webnn_py.device.on_wgpu.codegen.attention import tile
from webnn_py.device.on_wgpu.codegen.size_uniforms import UnwritableSizeError
from webnn_py.device.on_wgpu.runtime import dynamic_executable
from webnn_py.device.on_wgpu.runtime.dynamic_executable import DynamicWgpuGraph
from webnn_py.named_sizes.decisions import UnknownSizeError

MOST = 100
"""No multiple of 8, for which there are kernels of their own."""
REFUSE = failing(UnwritableSizeError())


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"dynamic-shapes"}) as opened:
        yield opened


@pytest.fixture
def graphs(monkeypatch):
    """The graphs that the GPU has compiled."""
    return noted(monkeypatch, DynamicWgpuGraph, "__init__", lambda self, *_: self)


@pytest.fixture
async def build(gpu, graphs):
    """Builds what is drawn of ``x`` [n, 16], and returns the graph and what the GPU has of it."""

    async def build(draw):
        builder = MLGraphBuilder(gpu)
        x = builder.input("x", data_type="float32", shape=[MLDynamicDimension("n", MOST), 16])
        return await builder.build({"y": draw(builder, x)}), graphs[-1]

    return build


def weights(b, *shape):
    return b.constant(np.ones(shape, np.float32))


def as_image(b, x):
    return b.reshape(x, [1, 1, *x.shape])


def network(b, x):
    steps = b.reshape(b.concat([x, x], 0), [2, x.shape[0], 16])
    return b.gru(steps, weights(b, 1, 24, 16), weights(b, 1, 24, 8), 2, 8)[0]


def attention(b, x):
    return b.matmul(b.softmax(b.matmul(x, b.transpose(x)), 1), x)


def in_blocks(b, x):
    padded = b.pad(x, [0, 0], [-x.shape[0] % 32, 0])
    blocks = b.reshape(padded, [padded.shape[0] // 32, 32, 16])
    return b.neg(b.reshape(b.softmax(blocks, 1), [padded.shape[0] // 32 * 32, 16]))


DRAWINGS = {
    "a product": lambda b, x: b.matmul(x, weights(b, 16, 40)),
    "a product of both": lambda b, x: b.matmul(b.transpose(x), x),
    "a convolution": lambda b, x: b.conv2d(as_image(b, x), weights(b, 8, 1, 3, 3), padding=[1, 1, 1, 1]),
    "a pooling": lambda b, x: b.average_pool2d(as_image(b, x), window_dimensions=[3, 1], padding=[1, 1, 0, 0]),
    "a network": network,
    "attention": attention,
    "blocks": in_blocks,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
async def test_kernels_are_right_for_many_sizes(build, monkeypatch, draw):
    monkeypatch.setattr(tile, "LEAST_PRODUCTS", 0)
    _, compiled = await build(draw)
    (variant,) = compiled._variants
    covered = [size for size in range(1, MOST + 1) if variant.covers({"n": size})]
    assert len(covered) > 3, f"only {covered}"


def sums(b, x):
    return b.reduce_sum(b.tanh(x), axes=[0])


async def test_the_kernels_that_were_used_last_are_kept(gpu, build, monkeypatch):
    monkeypatch.setattr(dynamic_executable, "MOST_VARIANTS", 2)
    monkeypatch.setattr(dynamic_executable.Variant, "__init__", REFUSE)  # each size has kernels of its own
    graph, compiled = await build(sums)
    (of_most,) = compiled._variants
    for size in (3, MOST, 5):
        await run_graph(gpu, graph, {"x": np.ones((size, 16), np.float32)}, {"y": (16,)})
    assert compiled._variants[0] is of_most, "it was used after those of 3"
    assert [variant.covers({"n": 5}) for variant in compiled._variants] == [False, True]


async def test_a_device_is_looked_at_when_kernels_for_other_sizes_cannot_be_made(gpu, build, monkeypatch):
    graph, compiled = await build(sums)
    looked = []
    monkeypatch.setattr(gpu._device.backend._watch, "look", lambda: looked.append(True))
    monkeypatch.setattr(compiled, "is_ready", lambda _inputs: False)
    monkeypatch.setattr(compiled, "prepare", REFUSE)
    with pytest.raises(UnknownError):
        await run_graph(gpu, graph, {"x": np.ones((3, 16), np.float32)}, {"y": (16,)})
    assert looked


@pytest.mark.parametrize("reason", [UnwritableSizeError("no place"), UnknownSizeError("no number")], ids=type)
async def test_sizes_that_no_text_can_have_get_kernels_of_their_own(gpu, build, monkeypatch, reason):
    monkeypatch.setattr(dynamic_executable, "Variant", failing(reason))
    graph, _ = await build(lambda b, x: b.neg(x))
    for size in (6, 3):
        x = np.arange(16 * size, dtype=np.float32).reshape(size, 16)
        results = await run_graph(gpu, graph, {"x": x}, {"y": x.shape})
        np.testing.assert_array_equal(results["y"], -x)


async def test_a_mistake_in_what_writes_kernels_is_told(build, monkeypatch):
    monkeypatch.setattr(dynamic_executable, "Variant", failing(TypeError("a mistake of ours")))
    with pytest.raises(OperationError, match="a mistake of ours"):
        await build(lambda b, x: b.neg(x))
