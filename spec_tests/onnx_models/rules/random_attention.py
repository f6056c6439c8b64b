"""Random cases of attention: mixes of inputs, attributes and lengths that onnxruntime takes."""

import numpy as np

from spec_tests.onnx_models.single_node import expected, microsoft, node


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
        "causal": int(rng.random() < 0.8),
        **given,
    }
    if not attributes["causal"]:
        attributes["local_window_size"] = -1
    half = one_of(rng, 8, size // 2)
    angles = (floats(rng, capacity, half), floats(rng, capacity, half)) if attributes["do_rotary"] else (None, None)
    positions = maybe(rng, rng.integers(0, capacity - new + 1, (batch, new)), 0.2) if attributes["do_rotary"] else None
    bias_shape = one_of(rng, 1, batch), one_of(rng, 1, heads * groups), new, int(total)
    bias = maybe(rng, floats(rng, *bias_shape), 0.3)
    sink = maybe(rng, floats(rng, heads * groups), 0.3)
    inputs = [query, key, value, *past, last, total, *angles, positions, bias, sink]
    known = [index for index in (5, 6) if rng.random() < 0.2 and not is_chosen]
    (case,) = microsoft("GroupQueryAttention", *inputs, known=known, outputs=3, **attributes)
    counts = np.minimum(last + 1, new) if kind == "prompt" else np.full(batch, new)
    return case, counts


def cached_attention(case, *, keeps):
    """Return the results of a case of GroupQueryAttention by onnxruntime's CPU.

    Args:
        case: the case.
        keeps: whether what the past has behind the new rows is to be in the present, instead of zeros.
    """
    output, *presents = expected(case)
    past, (last, total), new = case.inputs[3:5], case.inputs[5:7], output.shape[1]
    if not keeps or past[0] is None:
        return [output, *presents]
    presents = [present.copy() for present in presents]
    for sample, end in enumerate(np.where(total == new, new, last.reshape(-1) + 1)):
        for present, before in zip(presents, past, strict=True):
            present[sample, :, end : before.shape[2]] = before[sample, :, end:]
    return [output, *presents]


def multi_head(rng):
    """Return a random case of MultiHeadAttention; what is packed is not on onnxruntime's CPU."""
    batch, new, heads, size = (int(rng.integers(1, most)) for most in (4, 5, 4, 4))
    size, value_size = 4 * size, 4 * int(rng.integers(1, 4))
    unidirectional = int(rng.random() < 0.3)
    keys = new if unidirectional or rng.random() < 0.5 else int(rng.integers(1, 7))
    query, key, value = (
        floats(rng, batch, *rest) for rest in ((new, heads * size), (keys, heads * size), (keys, heads * value_size))
    )
    is_split, past, bias = rng.random() < 0.3, (None, None), None
    if is_split:
        key, value = floats(rng, batch, heads, keys, size), floats(rng, batch, heads, keys, size)
    else:
        bias = maybe(rng, floats(rng, heads * (2 * size + value_size)))
    if not is_split and size == value_size and rng.random() < 0.7:
        before = int(rng.integers(1, 6))
        past = floats(rng, batch, heads, before, size), floats(rng, batch, heads, before, value_size)
        keys += before
    masks = key_masks(rng, batch, new, keys)
    mask = maybe(rng, one_of(rng, masks[0], *masks[2:]))
    scores = maybe(rng, floats(rng, one_of(rng, 1, batch), one_of(rng, 1, heads), new, keys), 0.4)
    attributes = {
        "num_heads": heads,
        "unidirectional": unidirectional,
        "scale": one_of(rng, 0.0, 0.3),
        "mask_filter_value": one_of(rng, -300.0, -3.0),  # sums of 10,000 have three digits behind the point
    }
    inputs = query, key, value, bias, mask, scores, *past
    return microsoft("MultiHeadAttention", *inputs, outputs=3 if past[0] is not None else 1, **attributes)[0]


def key_masks(rng, batch, new, keys):
    """Return masks of all forms that attention with several heads takes: ends, and 0 or 1 for each key."""
    ends = rng.integers(1, keys + 1, batch).astype(np.int32)
    starts = np.minimum(rng.integers(0, 3, batch), ends - 1).astype(np.int32)
    ones = [rng.integers(0, 2, shape).astype(np.int32) for shape in ((batch, keys), (batch, new, keys))]
    return [ends, np.concatenate([ends, starts]), *ones]


def packed(rng):
    """Return a random case of com.microsoft's Attention."""
    batch, new, heads, size = (int(rng.integers(1, most)) for most in (4, 5, 4, 4))
    size, width = 4 * size, 8 * int(rng.integers(1, 3))
    value_size = one_of(rng, size, 4, 8)
    sizes = [heads * size, heads * size, heads * value_size]
    past, scores, keys = None, None, new
    if value_size == size and rng.random() < 0.5:
        before = int(rng.integers(1, 6))
        past, keys = floats(rng, 2, batch, heads, before, size), new + before
    else:
        scores = maybe(rng, floats(rng, one_of(rng, 1, batch), one_of(rng, 1, heads), new, keys))
    mask = maybe(rng, one_of(rng, *key_masks(rng, batch, new, keys)))
    attributes = {
        "num_heads": heads,
        "unidirectional": int(rng.random() < 0.4),
        "scale": one_of(rng, 0.0, 0.3),
        "mask_filter_value": one_of(rng, -300.0, -3.0),  # sums of 10,000 have three digits behind the point
        "qkv_hidden_sizes": sizes,
    }
    inputs = floats(rng, batch, new, width), floats(rng, width, sum(sizes)), floats(rng, sum(sizes)), mask, past, scores
    return microsoft("Attention", *inputs, outputs=1 if past is None else 2, **attributes)[0]


def attention(rng, version):
    """Return a random case of ONNX's Attention."""
    batch, new, heads, groups = (int(rng.integers(1, most)) for most in (4, 5, 3, 4))
    size, value_size = 4 * int(rng.integers(1, 4)), 4 * int(rng.integers(1, 4))
    way = one_of(rng, "none", "past", *(["ends"] if version > 23 else []))
    keys = new if way == "past" else int(rng.integers(new, 8))  # onnxruntime takes others as if all came before
    query, key, value = (
        floats(rng, batch, *rest)
        for rest in ((heads * groups, new, size), (heads, keys, size), (heads, keys, value_size))
    )
    past, before, ends = (None, None), 0, None
    if way == "past":
        before = int(rng.integers(1, 6))
        past = floats(rng, batch, heads, before, size), floats(rng, batch, heads, before, value_size)
    elif way == "ends":
        ends = rng.integers(new, keys + 1, batch)
    mask_shape = one_of(
        rng, (new, keys + before), (batch, 1, new, keys + before), (1, heads * groups, new, keys + before)
    )
    mask = one_of(rng, None, None, floats(rng, *mask_shape), rng.random(mask_shape) < 0.8)
    attributes = {
        "is_causal": int(rng.integers(2)),
        "qk_matmul_output_mode": one_of(rng, 0, 1, 3),  # of 2 onnxruntime's hidden scores are finite, unlike ONNX's
        "softcap": one_of(rng, 0.0, 1.5),
    }
    if rng.random() < 0.3:
        attributes["scale"] = 0.4
    if rng.random() < 0.5:
        query, key, value = (
            item.transpose(0, 2, 1, 3).reshape(batch, item.shape[2], -1) for item in (query, key, value)
        )
        attributes |= {"q_num_heads": heads * groups, "kv_num_heads": heads}
    inputs = [query, key, value, mask, *past]
    if version > 23:
        inputs.append(ends)
    return node(
        "Attention", version, *inputs, outputs=4, wanted=(0, 1, 2, 3) if way == "past" else (0, 3), **attributes
    )[0]


def scatter(rng):
    """Return a random case of TensorScatter."""
    batch, heads, size = (int(rng.integers(1, most)) for most in (4, 3, 5))
    capacity = int(rng.integers(3, 9))
    new = int(rng.integers(1, capacity + 1))
    mode = one_of(rng, "linear", "circular")
    shape, axis = one_of(rng, ((heads, None, size), -2), ((None, heads, size), 1), ((None, size), one_of(rng, 1, -2)))
    cache, update = (
        floats(rng, batch, *[count if item is None else item for item in shape]) for count in (capacity, new)
    )
    starts = rng.integers(0, capacity if mode == "circular" else capacity - new + 1, batch)
    return node("TensorScatter", 24, cache, update, maybe(rng, starts, 0.8), mode=mode, axis=axis)[0]
