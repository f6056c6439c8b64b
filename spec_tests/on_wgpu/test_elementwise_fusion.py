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


def heads(b, x, axes=(0, 2, 1, 3)):
    """Three heads of four columns each; x is a matrix."""
    return b.transpose(b.reshape(x, [1, x.shape[0], 3, x.shape[1] // 3]), permutation=list(axes))


def behind_heads(b, x):
    """What attention ends in: the heads' products side by side, and a product of that."""
    mixed = b.transpose(b.matmul(heads(b, x), random_constant(b, (1, 3, 4, 8))), permutation=[0, 2, 1, 3])
    return b.matmul(b.reshape(mixed, [8, 24]), random_constant(b, (24, 12), 2))


def transposed_output(b, x):
    product_ = b.matmul(heads(b, x), random_constant(b, (1, 3, 4, 8)))
    return b.transpose(b.relu(product_), permutation=[0, 2, 1, 3])


def reshaped_output(b, x):
    return b.reshape(b.relu(product(b, x)), [2, 48])


def reshaped_transposed_output(b, x):
    return b.reshape(transposed_output(b, x), [192])


def output_and_its_reshape(b, x):
    product_ = product(b, x)
    return product_, b.reshape(product_, [96])


def first_rows_as_output(b, x):
    return b.slice(product(b, x), [0, 0], [4, 12])


def reshaped_input(b, x):
    return b.reshape(x, [96])


def broadcast_output(b, x):
    return b.expand(b.reduce_sum(x), [96])


def transposed_outputs_by_two_names(b, x):
    output = transposed_output(b, x)
    return output, output


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


def odd_columns_transposed(b, x):
    product_ = b.matmul(heads(b, x), random_constant(b, (1, 3, 4, 7)))
    return b.transpose(product_, permutation=[0, 2, 1, 3])


def last_axis_transposed(b, x):
    return b.transpose(product(b, x), permutation=[1, 0])


def read_beside_its_transposition(b, x):
    product_ = b.matmul(heads(b, x), random_constant(b, (1, 3, 4, 8)))
    return b.transpose(product_, permutation=[0, 2, 1, 3]), b.relu(product_)


def transposed_for_a_product(b, x):
    product_ = b.matmul(heads(b, x), random_constant(b, (1, 3, 4, 8)))
    return b.matmul(b.transpose(product_, permutation=[0, 2, 1, 3]), random_constant(b, (8, 4), 2))


def scaled_scores(b, x):
    return b.softmax(b.mul(x, half(b)), 1)


def masked_scores(b, x):
    return b.softmax(b.add(b.mul(x, half(b)), random_constant(b, (1, 12))), 1)


def scores_of_a_product(b, x):
    return b.relu(b.softmax(b.mul(product(b, x), half(b)), 1))


def scores_that_are_an_output(b, x):
    scores = b.mul(x, half(b))
    return scores, b.softmax(scores, 1)


def scores_that_are_read_twice(b, x):
    scores = b.tanh(x)
    return b.mul(b.softmax(scores, 1), scores)


def operand_that_is_the_scale_too(b, x):
    row = b.tanh(b.reshape(b.slice(x, [0, 0], [1, 12]), [12]))
    return b.layer_normalization(row, scale=row, axes=[0])


def scale_that_is_computed(b, x):
    row = b.tanh(b.reshape(b.slice(x, [0, 0], [1, 12]), [12]))
    return b.layer_normalization(x, scale=row, axes=[1])


def scores_transposed_before(b, x):
    return b.softmax(b.mul(b.transpose(x), half(b)), 1)


def scores_transposed_behind(b, x):
    return b.relu(b.transpose(b.softmax(b.mul(x, half(b)), 1)))


def view_between(b, x):
    return b.softmax(b.reshape(b.tanh(x), [4, 24]), 1)


def one_behind_the_other(b, x):
    scores = b.mul(b.softmax(b.mul(x, half(b)), 1), half(b))
    return b.sqrt(b.reduce_sum(b.mul(scores, scores), axes=[1]))


def broadcast_before(b, x):
    return b.reduce_sum(b.mul(random_constant(b, (8, 1)), random_constant(b, (1, 12), 2)), axes=[1]), b.reduce_sum(
        b.mul(b.slice(x, [0, 0], [8, 1]), b.slice(x, [0, 0], [1, 12])), axes=[0]
    )


def sums_in_a_running_sum(b, x):
    return b.cumulative_sum(b.mul(x, half(b)), 1)


GRAPHS = {
    gelu_by_hand: 1,
    square: 1,
    chain_of_squares: 1,
    read_by_a_reduction_too: 3,
    broadcast_by_its_reader: 2,
    waits_for_another_product: 2,
    needed_before_and_behind_another_product: 2,
    output_on_the_way: 2,
    behind_heads: 2,
    transposed_output: 1,
    reshaped_output: 1,
    reshaped_transposed_output: 1,
    output_and_its_reshape: 2,
    first_rows_as_output: 2,
    reshaped_input: 1,
    broadcast_output: 2,
    transposed_outputs_by_two_names: 2,
    transposed_in_parts: 3,
    transposed_vectors: 1,
    transposed_convolution_output: 1,
    odd_columns_transposed: 2,
    last_axis_transposed: 2,
    read_beside_its_transposition: 3,
    transposed_for_a_product: 2,
    scaled_scores: 1,
    masked_scores: 1,
    scores_of_a_product: 2,
    scores_that_are_an_output: 2,
    scores_that_are_read_twice: 2,
    operand_that_is_the_scale_too: 2,
    scale_that_is_computed: 2,
    scores_transposed_before: 1,
    scores_transposed_behind: 2,
    view_between: 2,
    one_behind_the_other: 2,
    broadcast_before: 2,
    sums_in_a_running_sum: 2,
}
"""Drawings, and how many kernels they take."""


@pytest.mark.parametrize(("draw", "kernels"), GRAPHS.items(), ids=[draw.__name__ for draw in GRAPHS])
async def test_a_graph_takes_so_many_kernels(check_kernels, draw, kernels):
    await check_kernels(draw, kernels)


async def test_a_window_whose_rows_begin_between_vec4s(check_kernels):
    await check_kernels(lambda b, x: b.mul(b.slice(x, [0, 1], [8, 4]), half(b)), 1)


def growing(b, x):
    """Softmaxes of 1, 2, 4, 8 and 16 times as many rows."""
    for _ in range(5):
        x = b.tile(b.softmax(x, 1), [2, 1])
    return b.softmax(x, 1)


@pytest.mark.usefixtures("apart")
async def test_memory_serves_again_though_what_comes_later_is_larger(check_kernels, compiled):
    await check_kernels(growing, 11)
    largest = 8 * 12 * 4 * 2**5
    assert compiled[-1][1] == largest + largest // 2
