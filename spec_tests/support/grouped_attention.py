"""Grouped-query attention as the discussion of sub-graphs draws it, in operators of the specification."""

import math

import attrs
import numpy as np

INTEGERS = {"seqlens_k", "total_sequence_length"}


@attrs.frozen
class Sizes:
    """The sizes of a layer, and of one of its runs."""

    batch: int = 2
    heads: int = 4
    key_heads: int = 2
    new: int = 1
    size: int = 16
    capacity: int = 8
    data_type: str = "float32"

    def shapes(self):
        """Return the shape of each input."""
        rows, cache, table = (self.new, self.size), (self.capacity, self.size), (self.capacity, self.size // 2)
        return {
            "query": (self.batch, self.heads, *rows),
            "key": (self.batch, self.key_heads, *rows),
            "value": (self.batch, self.key_heads, *rows),
            "past_key": (self.batch, self.key_heads, *cache),
            "past_value": (self.batch, self.key_heads, *cache),
            "seqlens_k": (self.batch,),
            "total_sequence_length": (),
            "cos_cache": table,
            "sin_cache": table,
        }

    def inputs(self, builder, **shared):
        """Return an input of a builder for each; in place of those that are shared, these."""
        return {
            name: shared[name]
            if name in shared
            else builder.input(name, data_type="int32" if name in INTEGERS else self.data_type, shape=shape)
            for name, shape in self.shapes().items()
        }

    def feeds(self, begins, seed=0):
        """Return arrays for new tokens behind the first ``begins`` of each sample."""
        rng = np.random.default_rng(seed)
        begins = np.asarray(begins)
        angles = rng.uniform(-3, 3, self.shapes()["cos_cache"])
        arrays = {name: rng.uniform(-1, 1, shape) for name, shape in self.shapes().items()}
        is_there = np.arange(self.capacity)[:, None] < begins[:, None, None, None]
        arrays |= {name: arrays[name] * is_there for name in ("past_key", "past_value")}
        arrays |= {"cos_cache": np.cos(angles), "sin_cache": np.sin(angles)}
        arrays |= {"seqlens_k": begins + self.new - 1, "total_sequence_length": np.array(begins.max() + self.new)}
        with np.errstate(under="ignore"):
            return {name: item.astype("int32" if name in INTEGERS else self.data_type) for name, item in arrays.items()}


def attention(builder, inputs, config):
    """Draw the body; return the outputs by name."""
    batch, heads, new, size = inputs["query"].shape
    _, key_heads, capacity, _ = inputs["past_key"].shape
    data_type = inputs["query"].data_type
    first = builder.sub(builder.reshape(inputs["seqlens_k"], [batch, 1]), builder.constant(np.int32(new - 1)))
    positions = builder.add(first, builder.constant(np.arange(new, dtype=np.int32)[None]))
    query, key = inputs["query"], inputs["key"]
    if config.get("do_rotary"):
        tables = inputs["cos_cache"], inputs["sin_cache"]
        query, key = (rotated(builder, item, positions, *tables) for item in (query, key))
    rows = [batch, key_heads, new, 1]
    numbers = [
        np.arange(batch, dtype=np.int32)[:, None, None, None],
        np.arange(key_heads, dtype=np.int32)[:, None, None],
    ]
    parts = [builder.constant(np.broadcast_to(item, rows).copy()) for item in numbers]
    own = builder.reshape(positions, [batch, 1, new, 1])
    places = builder.concat([*parts, builder.expand(own, rows)], 3)
    present_key = builder.scatter_nd(inputs["past_key"], places, key)
    present_value = builder.scatter_nd(inputs["past_value"], places, inputs["value"])
    keys = builder.transpose(repeated(builder, present_key, heads), permutation=[0, 1, 3, 2])
    scale = builder.constant(config.get("scale") or 1 / math.sqrt(size), data_type=data_type)
    scores = builder.mul(builder.matmul(query, keys), scale)
    every = builder.constant(np.arange(capacity, dtype=np.int32))
    within = builder.lesser(every, inputs["total_sequence_length"])
    visible = builder.logical_and(builder.lesser_or_equal(every, own), within)
    zero, never = (builder.constant(number, data_type=data_type) for number in (0, -math.inf))
    probabilities = builder.softmax(builder.add(scores, builder.where(visible, zero, never)), 3)
    attended = builder.matmul(probabilities, repeated(builder, present_value, heads))
    joined = builder.transpose(attended, permutation=[0, 2, 1, 3])
    output = builder.reshape(joined, [batch, new, heads * size])
    return {"output": output, "present_key": present_key, "present_value": present_value}


def rotated(builder, x, positions, cosines, sines):
    """Turn one half of each head with the other."""
    shape = [x.shape[0], 1, x.shape[2], x.shape[3] // 2]
    cos, sin = (builder.reshape(builder.gather(item, positions), shape) for item in (cosines, sines))
    real, imaginary = builder.split(x, 2, axis=3)
    turned = builder.sub(builder.mul(real, cos), builder.mul(imaginary, sin))
    return builder.concat([turned, builder.add(builder.mul(real, sin), builder.mul(imaginary, cos))], 3)


def repeated(builder, cache, heads):
    """Repeat each head for a group of heads of queries."""
    batch, key_heads, length, size = cache.shape
    narrow = builder.reshape(cache, [batch, key_heads, 1, length, size])
    wide = builder.expand(narrow, [batch, key_heads, heads // key_heads, length, size])
    return builder.reshape(wide, [batch, heads, length, size])


def define(builder, operands, config, name="GQA", draw=attention):
    """Define the sub-graph with formal inputs of the descriptors of operands."""
    inputs = {
        each: builder.input(each, data_type=operand.data_type, shape=operand.shape)
        for each, operand in operands.items()
    }
    return builder.build_subgraph(draw(builder, inputs, config), name=name, inputs=inputs, config=config)
