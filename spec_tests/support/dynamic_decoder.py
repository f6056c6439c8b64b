"""A decoder's attention over a cache that grows, drawn with a number or a named dimension."""

import numpy as np

from webnn_py import MLGraphBuilder

HEADS, HEAD = 2, 4


def draw(context, past):
    """A builder and its outputs: what is attended to, and the longer caches."""
    builder = MLGraphBuilder(context)
    query, key, value = (
        builder.input(name, data_type="float32", shape=[HEADS, 1, HEAD]) for name in ("query", "key", "value")
    )
    keys = builder.concat([builder.input("keys", data_type="float32", shape=[HEADS, past, HEAD]), key], 1)
    values = builder.concat([builder.input("values", data_type="float32", shape=[HEADS, past, HEAD]), value], 1)
    scores = builder.matmul(query, builder.transpose(keys, permutation=[0, 2, 1]))
    weights = builder.softmax(builder.mul(scores, builder.constant(HEAD**-0.5, data_type="float32")), 2)
    return builder, {
        "attended": builder.reshape(builder.matmul(weights, values), [1, HEADS * HEAD]),
        "more_keys": builder.identity(keys),
        "more_values": builder.identity(values),
    }


def feeds(length):
    """Arrays for a step with caches of this length."""
    random = np.random.default_rng(length)
    step = {name: random.standard_normal((HEADS, 1, HEAD), np.float32) for name in ("query", "key", "value")}
    return step | {name: random.standard_normal((HEADS, length, HEAD), np.float32) for name in ("keys", "values")}
