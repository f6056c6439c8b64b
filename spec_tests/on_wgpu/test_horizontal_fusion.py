"""Products of one matrix with several constant ones become a single product, where that costs no copy."""

import numpy as np
import pytest

from spec_tests.support.both_devices import X, check_both, computed
from webnn_py import MLGraphBuilder
from webnn_py.devices.wgpu.passes import horizontal_fusion


def constant(b, *shape, seed, data_type="float32"):
    return b.constant((np.random.default_rng(seed).integers(-4, 4, shape) / 8).astype(data_type))


def linear(b, x, columns, seed):
    product = b.matmul(x, constant(b, x.shape[-1], columns, seed=seed, data_type=x.data_type))
    return b.add(product, constant(b, columns, seed=seed + 1, data_type=x.data_type))


def linear_without_bias(b, x, columns, seed):
    return b.matmul(x, constant(b, x.shape[-1], columns, seed=seed))


def gemm(b, x, columns, seed):
    weight, bias = constant(b, columns, x.shape[1], seed=seed), constant(b, columns, seed=seed + 1)
    return b.gemm(x, weight, c=bias, alpha=0.5, beta=2, b_transpose=True)


def gemm_of_transposed(b, x, columns, seed):
    return b.gemm(x, constant(b, x.shape[0], columns, seed=seed), a_transpose=True)


def heads(b, x, axes=(1, 0, 2)):
    """Three heads, or fewer where there are fewer columns, of four each."""
    return b.transpose(b.reshape(x, [x.shape[0], x.shape[1] // 4, 4]), permutation=list(axes))


def mix(b, query, key, value):
    """Attention of the three, which takes three kernels."""
    scores = b.softmax(b.matmul(heads(b, query), heads(b, key, (1, 2, 0))), 2)
    return b.matmul(scores, heads(b, value))


# --- joined ------------------------------------------------------------------------------------------------------


def attention(b, x, project=linear, first_seed=1):
    return mix(b, *(project(b, x, 12, seed) for seed in range(first_seed, first_seed + 6, 2)))


def attention_of_a_batch(b, x):
    x = b.reshape(x, [2, 4, 12])
    query, key, value = (linear(b, x, 12, seed) for seed in (1, 3, 5))
    return b.matmul(b.softmax(b.matmul(query, b.transpose(key, permutation=[0, 2, 1])), 2), value)


def bias_before_product(b, x):
    def project(b, x, columns, seed):
        return b.add(constant(b, columns, seed=seed), b.matmul(x, constant(b, 12, columns, seed=seed + 1)))

    return attention(b, x, project)


def computed_weights(b, x):
    def project(b, x, columns, seed):
        return b.matmul(x, b.transpose(b.relu(constant(b, columns, 12, seed=seed))))

    return attention(b, x, project)


def joined_to_a_cache(b, x):
    query, key, value = (heads(b, linear(b, x, 12, seed)) for seed in (1, 3, 5))
    keys, values = (b.concat([constant(b, 3, 5, 4, seed=seed), new], 1) for seed, new in ((7, key), (8, value)))
    scores = b.softmax(b.matmul(query, b.transpose(keys, permutation=[0, 2, 1])), 2)
    return b.matmul(scores, values)


def two_layers(b, x):
    mixed = b.reshape(b.transpose(attention(b, x), permutation=[1, 0, 2]), [8, 12])
    return attention(b, mixed, first_seed=11)


def key_is_an_output(b, x):
    query, key, value = (linear(b, x, 12, seed) for seed in (1, 3, 5))
    return mix(b, query, key, value), key


def product_before_its_bias_is_an_output(b, x):
    product = b.matmul(x, constant(b, 12, 12, seed=1))
    query, key, value = b.add(product, constant(b, 12, seed=2)), linear(b, x, 12, 3), linear(b, x, 12, 5)
    return mix(b, query, key, value), product


def one_is_squared(b, x):
    query, key, value = (linear(b, x, 12, seed) for seed in (1, 3, 5))
    return mix(b, b.mul(query, query), key, value)


# --- left as they are --------------------------------------------------------------------------------------------


def transposed_by_itself(b, x):
    first = b.gemm(x, constant(b, 12, 8, seed=1))
    return b.matmul(first, b.gemm(x, constant(b, 8, 12, seed=2), b_transpose=True))


def weight_of_both(b, x):
    weight = constant(b, 12, 12, seed=1)
    return b.matmul(b.matmul(x, weight), b.transpose(b.matmul(x, weight)))


def broadcast_by_its_bias(b, x):
    first, second = (b.add(b.matmul(x, constant(b, 12, 1, seed=seed)), constant(b, 4, seed=seed)) for seed in (1, 2))
    return b.matmul(first, b.transpose(second))


def bias_of_every_row(b, x):
    first, second = (b.add(b.matmul(x, constant(b, 12, 8, seed=seed)), constant(b, 8, 1, seed=seed)) for seed in (1, 2))
    return b.matmul(first, second)


def added_to_itself(b, x):
    first, second = (b.matmul(x, constant(b, 12, 8, seed=seed)) for seed in (1, 2))
    return b.matmul(b.add(first, first), b.add(second, second))


def read_in_one_row(b, x):
    first, second = (linear(b, x, 12, seed) for seed in (1, 3))
    return b.matmul(b.reshape(first, [1, 96]), b.reshape(second, [96, 1]))


def columns_in_a_batch(b, x):
    """Views with neighbours in different matrices, which products read copies of."""
    first, second = (
        b.transpose(b.reshape(linear(b, x, 12, seed), [8, 3, 4]), permutation=[2, 0, 1]) for seed in (1, 3)
    )
    return b.matmul(first, b.transpose(second, permutation=[0, 2, 1]))


def weight_is_an_output(b, x):
    weights = [b.neg(constant(b, 12, 8, seed=seed)) for seed in (1, 2)]
    return b.matmul(*(b.matmul(x, weight) for weight in weights)), weights[1]


GRAPHS = {
    "attention": (attention, 4),
    "attention without biases": (lambda b, x: attention(b, x, linear_without_bias), 4),
    "attention by gemm": (lambda b, x: attention(b, x, gemm), 4),
    "attention by gemm without biases": (lambda b, x: attention(b, b.transpose(x), gemm_of_transposed), 4),
    "attention of a batch": (attention_of_a_batch, 4),
    "fewer keys and values": (lambda b, x: mix(b, linear(b, x, 12, 1), linear(b, x, 4, 3), linear(b, x, 4, 5)), 4),
    "bias before product": (bias_before_product, 4),
    "computed weights": (computed_weights, 4),
    "two layers": (two_layers, 8),
    "key is an output": (key_is_an_output, 5),
    "product before its bias is an output": (product_before_its_bias_is_an_output, 6),
    "one is squared": (one_is_squared, 5),
    "gates": (lambda b, x: b.mul(b.sigmoid(linear(b, x, 12, 1)), linear(b, x, 12, 3)), 2),
    "one with bias": (lambda b, x: b.matmul(linear(b, x, 12, 1), b.transpose(linear_without_bias(b, x, 12, 3))), 3),
    "other factors": (
        lambda b, x: b.matmul(*(b.gemm(x, constant(b, 12, 8, seed=seed), alpha=seed) for seed in (1, 2))),
        3,
    ),
    "transposed by itself": (transposed_by_itself, 3),
    "weight of both": (weight_of_both, 3),
    "odd columns": (lambda b, x: b.matmul(*(linear(b, x, columns, columns) for columns in (8, 6))), 3),
    "broadcast by its bias": (broadcast_by_its_bias, 5),
    "bias of every row": (bias_of_every_row, 3),
    "added to itself": (added_to_itself, 3),
    "read in one row": (read_in_one_row, 3),
    "columns in a batch": (columns_in_a_batch, 5),
    "weights in a batch": (
        lambda b, x: b.matmul(*(b.matmul(x, constant(b, 2, 12, 8, seed=seed)) for seed in (1, 2))),
        3,
    ),
    "weight is an output": (weight_is_an_output, 4),
    "products of different matrices": (lambda b, x: b.matmul(linear(b, x, 8, 1), linear(b, b.tanh(x), 12, 3)), 4),
}
"""Drawings, and how many kernels they take."""


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("draw", "kernels"), GRAPHS.values(), ids=GRAPHS)
async def test_products_of_one_matrix_are_joined_where_it_costs_no_copy(check_kernels, draw, kernels):
    await check_kernels(draw, kernels)


async def test_products_that_are_joined_to_a_cache_become_one(check_kernels):
    await check_kernels(joined_to_a_cache, 6)


@pytest.fixture
def join_up_to(monkeypatch):
    """A function that sets the most bytes of weights of which joined products are made."""
    return lambda byte_length: monkeypatch.setattr(horizontal_fusion, "MOST_BYTES", byte_length)


async def test_float16_products_are_joined(ml, compiled, join_up_to):
    await check_both(ml, [X.astype("float16")], attention, rtol=2e-3)
    join_up_to(0)
    await computed(ml, [X.astype("float16")], attention)
    joined, apart = compiled[-2:]
    assert joined[0] == apart[0] - 2


async def test_large_products_stay_apart(check_kernels, join_up_to):
    join_up_to(3 * 12 * 12 * 4 - 1)
    await check_kernels(attention, 6)


async def test_weights_are_not_kept_twice(ml, compiled, join_up_to):
    await computed(ml, [X], attention)
    join_up_to(0)
    await computed(ml, [X], attention)
    joined, apart = compiled[-2:]
    assert joined[0] < apart[0]
    assert joined[1] < apart[1] + 3 * 12 * 12 * 4


async def test_weights_in_the_users_buffers_stay_there(ml, compiled):
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    data = np.eye(4, dtype=np.float32)
    weights = [await context.create_constant_buffer(data, data_type="float32", shape=[4, 4]) for _ in range(2)]
    x = builder.input("x", data_type="float32", shape=[4, 4])
    await builder.build({"y": builder.matmul(*(builder.matmul(x, builder.constant(weight)) for weight in weights))})
    assert [kernels for kernels, *_ in compiled] == [3]
