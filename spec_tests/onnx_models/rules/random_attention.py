"""Random cases of attention: mixes of inputs, attributes and lengths that onnxruntime takes."""

import numpy as np

from spec_tests.onnx_models.single_node import microsoft


def maybe(rng, item, share=0.5):
    """Return an item, or None."""
    return item if rng.random() < share else None


def floats(rng, *shape):
    """Return random numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def one_of(rng, *items):
    """Return one of some items."""
    return items[rng.integers(len(items))]


def lengths_of(rng, batch, new, capacity, kind):
    """Return the last positions of samples and their total length, at random.

    Args:
        rng: the generator.
        batch: how many samples.
        new: how many keys each gets.
        capacity: the length of the cache.
        kind: "prompt", "decode" or "continued".
    """
    if kind == "prompt":
        lengths = rng.integers(1, new + 1, batch)
        lengths[0] = new
    else:
        lengths = rng.integers(new + (kind == "continued"), capacity + 1, batch)
    total = int(lengths.max())
    return (lengths - 1).astype(np.int32), np.array(total, np.int32)


def group_query(rng, kind=None, batch=None, capacity=None, **given):
    """Return a random case of GroupQueryAttention and how many rows of each sample's output mean something.

    Args:
        rng: the generator.
        kind: "prompt", "decode" or "continued"; any when absent.
        batch: how many samples; any when absent.
        capacity: the length of the cache; any when absent.
        given: attributes that are not left to chance.
    """
    is_chosen = kind is not None
    kind = kind or one_of(rng, "prompt", "decode", "decode", "continued")
    batch = batch or (1 if kind == "continued" else int(rng.integers(1, 4)))
    new = 1 if kind == "decode" else int(rng.integers(2, 6))
    heads, groups, size = int(rng.integers(1, 4)), int(rng.integers(1, 4)), one_of(rng, 16, 32)
    capacity = capacity or new + int(rng.integers(2, 12))
    last, total = lengths_of(rng, batch, new, capacity, kind)
    rows = (floats(rng, batch, new, n * size) for n in (heads * groups, heads, heads))
    query, key, value = rows
    if rng.random() < 0.3:
        query, key, value = np.concatenate([query, key, value], 2), None, None
    past = None, None
    if kind != "prompt" or rng.random() < 0.7:
        past = floats(rng, batch, heads, capacity, size), floats(rng, batch, heads, capacity, size)
    attributes = {
        "num_heads": heads * groups,
        "kv_num_heads": heads,
        "do_rotary": int(rng.integers(2)),
        "rotary_interleaved": int(rng.integers(2)),
        "scale": one_of(rng, 0.0, 0.0, 0.3),
        "softcap": one_of(rng, 0.0, 0.0, 1.5),
        "smooth_softmax": one_of(rng, -1, 0, 1),
        "local_window_size": one_of(rng, -1, -1, 1, 2, 5),
        **given,
    }
    half = one_of(rng, 8, size // 2)
    angles = (floats(rng, capacity, half), floats(rng, capacity, half)) if attributes["do_rotary"] else (None, None)
    positions = maybe(rng, rng.integers(0, int(total), (batch, new)), 0.2) if attributes["do_rotary"] else None
    bias_shape = one_of(rng, 1, batch), one_of(rng, 1, heads * groups), new, int(total)
    bias = maybe(rng, floats(rng, *bias_shape), 0.3)
    sink = maybe(rng, floats(rng, heads * groups), 0.3)
    inputs = [query, key, value, *past, last, total, *angles, positions, bias, sink]
    known = [index for index in (5, 6) if rng.random() < 0.2 and not is_chosen]
    (case,) = microsoft("GroupQueryAttention", *inputs, known=known, outputs=3, **attributes)
    counts = np.minimum(last + 1, new) if kind == "prompt" else np.full(batch, new)
    return case, counts
