"""Graphs give the same values without any of the optional kernels and fusions, alone or several of them."""

import random
from functools import cache, partial

import numpy as np
import pytest

from spec_tests.labs.benchmarks.gpu_variants import QUICK, Model, asked, channels_last, difference, large_windows
from spec_tests.support.computing import compute
from spec_tests.support.depth import amount
from webnn_py import MLGraphBuilder
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.devices.wgpu.codegen.convolution import winograd
from webnn_py.extensions import int4

SUBSETS = 7
"""Random ones of the variants that a model uses, besides all of them; a quick run has one."""

RNG = np.random.default_rng(11)


@cache
def weights(*shape, data_type="float32"):
    with np.errstate(under="ignore"):
        return (RNG.standard_normal(shape) * 0.2).astype(data_type)


def convolutions(b, x):
    """Of two images, [2, 16, 10, 10]."""
    y = b.relu(b.conv2d(x, b.constant(weights(16, 16, 3, 3)), padding=[1] * 4, bias=b.constant(weights(16))))
    y = b.max_pool2d(y, window_dimensions=[3, 3], padding=[1] * 4)
    y = b.conv2d(y, b.constant(weights(16, 1, 3, 3)), padding=[1] * 4, groups=16)
    return b.average_pool2d(b.conv2d(y, b.constant(weights(16, 2, 3, 3)), groups=8))


def other_convolutions(b, x):
    """Of two images, [2, 16, 8, 8]."""
    y = b.conv2d(x, b.constant(weights(20, 16, 1, 1)))
    long = b.conv2d(y, b.constant(weights(4, 20, 18, 18)), padding=[9] * 4, strides=[4, 4])
    y = b.conv_transpose2d(y, b.constant(weights(20, 8, 4, 4)), padding=[1] * 4, strides=[2, 2])
    return b.concat([b.average_pool2d(y), b.average_pool2d(long)], 1)


def products(data_type, b, x):
    """Of [24, 96]: a large product for the thresholds here, chains behind it, and a transposition of its result."""
    x = b.cast(x, data_type)
    y = b.gelu(b.matmul(x, b.constant(weights(96, 160, data_type=data_type))))
    y = b.matmul(y, b.constant(weights(160, 520, data_type=data_type)))
    y = b.softmax(b.mul(b.sin(b.slice(y, [0, 0], [24, 512])), b.constant(0.5, data_type=data_type)), 1)
    last = b.slice(y, [0, 0], [3, 512])
    last = b.matmul(last, b.constant(weights(512, 1040, data_type=data_type)))
    turned = b.transpose(b.constant(weights(64, 1040, data_type=data_type)))
    turned = b.matmul(b.slice(last, [0, 0], [1, 1040]), turned)
    whole = b.concat([b.reduce_sum(b.transpose(y), axes=[0]), b.reduce_mean(last, axes=[1])], 0)
    return b.cast(b.add(b.reshape(b.reduce_sum(b.exp(turned), axes=[1]), [1]), whole), "float32")


MODELS = {
    **{name: make for name, make in QUICK.items() if "ConvNeXt" not in name and "last" not in name},
    "channels last": lambda: Model.of_drawing([1, 8, 8, 8], partial(channels_last, (8, 16, 16))),
    "ConvNeXt": lambda: Model.of_drawing([1, 16, 8, 8], partial(large_windows, 1)),
    "convolutions": lambda: Model.of_drawing([2, 16, 10, 10], convolutions),
    "other convolutions": lambda: Model.of_drawing([2, 16, 8, 8], other_convolutions),
    "products": lambda: Model.of_drawing([24, 96], partial(products, "float32")),
    "products of float16": lambda: Model.of_drawing([24, 96], partial(products, "float16")),
}


@pytest.fixture
def small(all_products_large, fuse_attention_from, monkeypatch):
    """Small operators count as large ones."""
    fuse_attention_from(0)
    for module, name in ((winograd, "LEAST_PRODUCTS"), (winograd, "LEAST_CHANNELS"), (int4, "LEAST_PACKED")):
        monkeypatch.setattr(module, name, 1)


async def computed(context, model):
    builder = MLGraphBuilder(context)
    outputs = model.draw(builder)
    (result,) = (await compute(context, builder, {"x": model.data}, outputs)).values()
    return result


@pytest.mark.sampled(len(MODELS))  # one: its kernels are compiled anew for every set of variants
@pytest.mark.parametrize("name", MODELS)
async def test_a_model_gives_the_same_without_variants(ml, small, pytestconfig, name):
    with np.errstate(under="ignore"):
        model = MODELS[name]()
    gpu, numpy = [await ml.create_context(backend=backend) for backend in ("wgpu", "numpy")]
    expected = await computed(numpy, model)
    with asked() as used:
        whole = await computed(gpu, model)
    most = 2e-2 if "float16" in name else 1e-4
    assert difference(whole, expected) < most
    chooser = random.Random(7)  # noqa: S311 - for tests
    used = sorted(used)
    count = amount(pytestconfig, quick=1, full=SUBSETS, thorough=SUBSETS)
    subsets = [used, *(chooser.sample(used, chooser.randrange(1, len(used))) for _ in range(count))]
    wrong = []
    for names in subsets:
        with passes_left_out(*names):
            off = difference(await computed(gpu, model), expected)
        if not off < most:
            wrong.append(f"off by {off:.2g} without {', '.join(names)}")
    assert not wrong, "\n".join(wrong)
