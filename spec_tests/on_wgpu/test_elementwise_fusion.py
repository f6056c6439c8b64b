"""Element-wise nodes are computed by the kernels of what they read or of what reads them, and compute the same."""

import numpy as np
import pytest


def random_constant(b, shape, seed=1):
    return b.constant(np.random.default_rng(seed).integers(-4, 4, shape).astype(np.float32) / 8)


def product(b, x, seed=1):
    return b.matmul(x, random_constant(b, (12, 12), seed))


def gelu_by_hand(b, x):
    x = product(b, x)
    return b.mul(b.mul(x, half(b)), b.add(b.erf(b.mul(x, half(b))), half(b)))


def half(b):
    return b.constant(0.5, data_type="float32")


def chain_of_squares(b, x):
    for _ in range(20):
        x = b.mul(x, half(b))
        x = b.sub(b.mul(x, x), x)
    return x


def read_by_a_reduction_too(b, x):
    x = b.mul(b.tanh(product(b, x)), half(b))
    return b.add(b.sub(x, half(b)), b.reduce_sum(x, axes=[1], keep_dimensions=True))


def needed_before_and_behind_another_product(b, x):
    first = product(b, x)
    gate = b.sigmoid(first)
    sum_ = b.add(b.mul(first, gate), product(b, x, 2))
    return b.add(sum_, gate)


def turned(b, x):
    return b.transpose(x, permutation=[0, 2, 1, 3])


def mixed(b, x, columns=8):
    """Three heads of four columns of x, which is a matrix, each times a matrix."""
    heads = turned(b, b.reshape(x, [1, x.shape[0], 3, x.shape[1] // 3]))
    return b.matmul(heads, random_constant(b, (1, 3, 4, columns)))


def behind_heads(b, x):
    """The heads' products side by side, and a product of that, as attention ends."""
    return b.matmul(b.reshape(turned(b, mixed(b, x)), [8, 24]), random_constant(b, (24, 12), 2))


def transposed_in_parts(b, x):
    x = b.tile(x, [1, 800])
    product_ = b.matmul(b.reshape(x, [2, 32, 1200]), random_constant(b, (2, 1200, 12)))
    return b.reshape(b.transpose(product_, permutation=[1, 0, 2]), [64, 12])


def transposed_vectors(b, x):
    product_ = b.matmul(b.reshape(x, [8, 1, 12]), random_constant(b, (8, 12, 12)))
    return b.reshape(b.transpose(product_, permutation=[1, 0, 2]), [2, 48])


def transposed_convolution_output(b, x):
    images = b.reshape(x, [2, 4, 1, 12])
    layout = {"input_layout": "nhwc", "filter_layout": "ohwi"}
    return b.transpose(b.conv2d(images, random_constant(b, (8, 1, 1, 12)), **layout), permutation=[1, 0, 2, 3])


def operand_that_is_the_scale_too(b, x):
    row = b.tanh(b.reshape(b.slice(x, [0, 0], [1, 12]), [12]))
    return b.layer_normalization(row, scale=row, axes=[0])


def scale_that_is_computed(b, x):
    row = b.tanh(b.reshape(b.slice(x, [0, 0], [1, 12]), [12]))
    return b.layer_normalization(x, scale=row, axes=[1])


def one_behind_the_other(b, x):
    scores = b.mul(b.softmax(b.mul(x, half(b)), 1), half(b))
    return b.sqrt(b.reduce_sum(b.mul(scores, scores), axes=[1]))


GRAPHS = {
    "gelu by hand": (gelu_by_hand, 1),
    "square": (lambda b, x: b.mul(y := product(b, x), y), 1),
    "chain of squares": (chain_of_squares, 1),
    "read by a reduction too": (read_by_a_reduction_too, 3),
    "broadcast by its reader": (
        lambda b, x: b.add(b.mul(row := b.tanh(b.reduce_sum(x, axes=[0], keep_dimensions=True)), row), x),
        2,
    ),
    "waits for another product": (lambda b, x: b.add(b.mul(y := product(b, x), b.sigmoid(y)), product(b, x, 2)), 2),
    "output on the way": (lambda b, x: (y := b.tanh(product(b, x)), b.mul(y, b.add(y, half(b)))), 2),
    "behind heads": (behind_heads, 2),
    "transposed output": (lambda b, x: turned(b, b.relu(mixed(b, x))), 1),
    "reshaped output": (lambda b, x: b.reshape(b.relu(product(b, x)), [2, 48]), 1),
    "reshaped transposed output": (lambda b, x: b.reshape(turned(b, b.relu(mixed(b, x))), [192]), 1),
    "output and its reshape": (lambda b, x: (y := product(b, x), b.reshape(y, [96])), 2),
    "first rows as output": (lambda b, x: b.slice(product(b, x), [0, 0], [4, 12]), 2),
    "reshaped input": (lambda b, x: b.reshape(x, [96]), 1),
    "broadcast output": (lambda b, x: b.expand(b.reduce_sum(x), [96]), 2),
    "transposed outputs by two names": (lambda b, x: (y := turned(b, b.relu(mixed(b, x))), y), 2),
    "transposed in parts": (transposed_in_parts, 3),
    "transposed vectors": (transposed_vectors, 1),
    "transposed convolution output": (transposed_convolution_output, 1),
    "odd columns transposed": (lambda b, x: turned(b, mixed(b, x, 7)), 2),
    "last axis transposed": (lambda b, x: b.transpose(product(b, x), permutation=[1, 0]), 2),
    "read beside its transposition": (lambda b, x: (turned(b, y := mixed(b, x)), b.relu(y)), 3),
    "transposed for a product": (lambda b, x: b.matmul(turned(b, mixed(b, x)), random_constant(b, (8, 4), 2)), 2),
    "scaled scores": (lambda b, x: b.softmax(b.mul(x, half(b)), 1), 1),
    "masked scores": (lambda b, x: b.softmax(b.add(b.mul(x, half(b)), random_constant(b, (1, 12))), 1), 1),
    "scores of a product": (lambda b, x: b.relu(b.softmax(b.mul(product(b, x), half(b)), 1)), 2),
    "scores that are an output": (lambda b, x: (scores := b.mul(x, half(b)), b.softmax(scores, 1)), 2),
    "scores that are read twice": (lambda b, x: b.mul(b.softmax(scores := b.tanh(x), 1), scores), 2),
    "operand that is the scale too": (operand_that_is_the_scale_too, 2),
    "scale that is computed": (scale_that_is_computed, 2),
    "scores transposed before": (lambda b, x: b.softmax(b.mul(b.transpose(x), half(b)), 1), 1),
    "scores transposed behind": (lambda b, x: b.relu(b.transpose(b.softmax(b.mul(x, half(b)), 1))), 2),
    "view between": (lambda b, x: b.softmax(b.reshape(b.tanh(x), [4, 24]), 1), 2),
    "one behind the other": (one_behind_the_other, 2),
    "broadcast before": (
        lambda b, x: (
            b.reduce_sum(b.mul(random_constant(b, (8, 1)), random_constant(b, (1, 12), 2)), axes=[1]),
            b.reduce_sum(b.mul(b.slice(x, [0, 0], [8, 1]), b.slice(x, [0, 0], [1, 12])), axes=[0]),
        ),
        2,
    ),
    "a window whose rows begin between vec4s": (lambda b, x: b.mul(b.slice(x, [0, 1], [8, 4]), half(b)), 1),
    "sums in a running sum": (lambda b, x: b.cumulative_sum(b.mul(x, half(b)), 1), 2),
}
"""Drawings, and how many kernels they take."""


@pytest.mark.sampled(1)
async def test_a_result_that_others_read_is_kept(check_kernels):
    await check_kernels(needed_before_and_behind_another_product, 2)


@pytest.mark.parametrize(("draw", "kernels"), GRAPHS.values(), ids=GRAPHS)
async def test_a_graph_takes_so_many_kernels(check_kernels, draw, kernels):
    await check_kernels(draw, kernels)


def growing(b, x):
    """Softmaxes of 1, 2, 4, 8 and 16 times as many rows."""
    for _ in range(5):
        x = b.tile(b.softmax(x, 1), [2, 1])
    return b.softmax(x, 1)


async def test_memory_serves_again_though_what_comes_later_is_larger(check_kernels, compiled):
    await check_kernels(growing, 11)
    largest = 8 * 12 * 4 * 2**5
    assert compiled[-1][1] == largest + largest // 2
