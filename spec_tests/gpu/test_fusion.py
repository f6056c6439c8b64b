"""Element-wise nodes are computed by the kernels of what they read or of what reads them, and compute the same."""

import numpy as np
import pytest

from spec_tests.support.backends import BACKENDS, HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device.on_wgpu.compiled import WgpuGraph

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


def product(b, x, seed=1):
    return b.matmul(x, b.constant(np.random.default_rng(seed).integers(-4, 4, (12, 12)).astype(np.float32) / 8))


def gelu_by_hand(b, x):
    x = product(b, x)
    return b.mul(b.mul(x, half(b)), b.add(b.erf(b.mul(x, half(b))), half(b)))


def half(b):
    return b.constant(0.5, data_type="float32")


def square(b, x):
    x = product(b, x)
    return b.mul(x, x)


def chain_of_squares(b, x):
    for _ in range(20):
        x = b.mul(x, half(b))
        x = b.sub(b.mul(x, x), x)
    return x


def read_by_a_reduction_too(b, x):
    x = b.mul(b.tanh(product(b, x)), half(b))
    return b.add(b.sub(x, half(b)), b.reduce_sum(x, axes=[1], keep_dimensions=True))


def broadcast_by_its_reader(b, x):
    row = b.tanh(b.reduce_sum(x, axes=[0], keep_dimensions=True))
    return b.add(b.mul(row, row), x)


def waits_for_another_product(b, x):
    first = product(b, x)
    gated = b.mul(first, b.sigmoid(first))
    return b.add(gated, product(b, x, 2))


def needed_before_and_behind_another_product(b, x):
    first = product(b, x)
    gate = b.sigmoid(first)
    sum_ = b.add(b.mul(first, gate), product(b, x, 2))
    return b.add(sum_, gate)


def output_on_the_way(b, x):
    first = b.tanh(product(b, x))
    return first, b.mul(first, b.add(first, half(b)))


GRAPHS = {
    gelu_by_hand: 1,
    square: 1,
    chain_of_squares: 1,
    read_by_a_reduction_too: 3,
    broadcast_by_its_reader: 3,
    waits_for_another_product: 2,
    needed_before_and_behind_another_product: 2,
    output_on_the_way: 2,
}
"""Drawings, and how many kernels they take."""


@pytest.fixture
def kernel_counts(monkeypatch):
    counts = []
    make = WgpuGraph.__init__

    def make_and_count(self, *arguments, **options):
        make(self, *arguments, **options)
        counts.append(len(self._steps))

    monkeypatch.setattr(WgpuGraph, "__init__", make_and_count)
    return counts


async def results(ml, backend, draw):
    context = await ml.create_context(backend=backend)
    builder = MLGraphBuilder(context)
    array = np.random.default_rng(5).integers(-8, 8, (8, 12)).astype(np.float32) / 8
    drawn = draw(builder, builder.input("x", data_type="float32", shape=array.shape))
    outputs = {str(index): operand for index, operand in enumerate(drawn if isinstance(drawn, tuple) else [drawn])}
    return await compute(context, builder, {"x": array}, outputs)


@pytest.mark.parametrize(("draw", "kernels"), GRAPHS.items(), ids=[draw.__name__ for draw in GRAPHS])
async def test_a_graph_takes_so_many_kernels(ml, kernel_counts, draw, kernels):
    numpy, gpu = [await results(ml, backend, draw) for backend in BACKENDS]
    assert kernel_counts == [kernels]
    for name, expected in numpy.items():
        np.testing.assert_allclose(gpu[name], expected, rtol=1e-5, atol=1e-6)
