"""Grouped-query attention in operators of the specification: the decomposition that the name "GQA" stands for."""

import attrs
import numpy as np

from webnn_py.devices.composites.cached_attention import by_positions
from webnn_py.extensions.subgraph import build_subgraph

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
        cache, table = (self.capacity, self.size), (self.capacity, self.size // 2)
        return {
            "query": (self.batch, self.new, self.heads * self.size),
            "key": (self.batch, self.new, self.key_heads * self.size),
            "value": (self.batch, self.new, self.key_heads * self.size),
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
    rotary = {"cosines": inputs["cos_cache"], "sines": inputs["sin_cache"]} if config.get("do_rotary") else {}
    drawn = by_positions(
        builder,
        inputs["query"],
        inputs["seqlens_k"],
        inputs["total_sequence_length"],
        **{name: inputs[name] for name in ("key", "value", "past_key", "past_value")},
        **rotary,
        num_heads=config["num_heads"],
        kv_num_heads=config["kv_num_heads"],
        capacity=inputs["past_key"].shape[2],
        scale=config.get("scale") or 0.0,
    )
    return dict(zip(("output", "present_key", "present_value"), drawn, strict=True))


def define(builder, operands, config, name="GQA", draw=attention):
    """Define the sub-graph with formal inputs of the descriptors of operands."""
    inputs = {
        each: builder.input(each, data_type=operand.data_type, shape=operand.shape)
        for each, operand in operands.items()
    }
    return build_subgraph(builder, draw(builder, inputs, config), name=name, inputs=inputs, config=config)
