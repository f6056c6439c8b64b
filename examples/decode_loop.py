"""Greedy decoding wholly on the device: between two steps only the chosen token comes to the host.

A small decoder, one layer of attention over a cache of keys and values, is captured and replayed. What the next step
needs, which is the token, the position, the attention mask and the cache, is updated on the device: by a second
captured session, and by copies. The tokens are compared with numpy's.

    python examples/decode_loop.py [backend]
"""

import sys
from typing import Any

import attrs
import numpy as np
import trio

import webnn_py
from webnn_py import MLGraph, MLGraphBuilder
from webnn_py.runtime import Environment, InferenceSession, Tensor

Array = np.ndarray[Any, Any]
WORDS, WIDTH, LONGEST = 48, 32, 24
FIRST = 7


@attrs.frozen
class Weights:
    """Weights of a decoder that has learnt nothing, but says something definite."""

    words: Array
    places: Array
    query: Array
    key: Array
    value: Array
    head: Array

    @classmethod
    def random(cls, seed: int = 716) -> "Weights":
        """Numbers that lie so far apart that no rounding changes a token."""
        rng = np.random.default_rng(seed)
        shapes = [(WORDS, WIDTH), (LONGEST, WIDTH), *[(WIDTH, WIDTH)] * 3, (WIDTH, WORDS)]
        return cls(*(rng.standard_normal(shape).astype(np.float32) / 2 for shape in shapes))


# --- the two graphs ------------------------------------------------------------------------------------------


async def build_decoder(context: webnn_py.MLContext, weights: Weights) -> MLGraph:
    """A step: the word at a position, and what is known of those before it, give the next word."""
    b = MLGraphBuilder(context)
    token = b.input("token", data_type="int32", shape=[1])
    position = b.input("position", data_type="int32", shape=[1])
    mask = b.input("mask", data_type="float32", shape=[1, LONGEST])
    keys = b.input("keys", data_type="float32", shape=[LONGEST, WIDTH])
    values = b.input("values", data_type="float32", shape=[LONGEST, WIDTH])
    word = b.gather(b.constant(weights.words), token)
    hidden = b.add(word, b.gather(b.constant(weights.places), position))
    here = b.equal(b.constant(np.arange(LONGEST, dtype=np.int32).reshape(-1, 1)), position)
    new_keys = b.where(here, b.matmul(hidden, b.constant(weights.key)), keys)
    new_values = b.where(here, b.matmul(hidden, b.constant(weights.value)), values)
    query = b.matmul(hidden, b.constant(weights.query))
    scores = b.mul(b.matmul(query, b.transpose(new_keys)), b.constant(WIDTH**-0.5, data_type="float32"))
    hidden_away = b.mul(b.sub(mask, b.constant(1, data_type="float32")), b.constant(1e4, data_type="float32"))
    attention = b.softmax(b.add(scores, hidden_away), 1)
    hidden = b.add(hidden, b.matmul(attention, new_values))
    logits = b.matmul(hidden, b.constant(weights.head))
    chosen = b.arg_max(logits, 1, output_data_type="int32")
    return await b.build({"next": chosen, "new_keys": new_keys, "new_values": new_values})


async def build_advance(context: webnn_py.MLContext) -> MLGraph:
    """The position and the attention mask of the next step."""
    b = MLGraphBuilder(context)
    position = b.input("position", data_type="int32", shape=[1])
    mask = b.input("mask", data_type="float32", shape=[1, LONGEST])
    following = b.add(position, b.constant(1, data_type="int32"))
    here = b.equal(b.constant(np.arange(LONGEST, dtype=np.int32).reshape(1, -1)), following)
    new_mask = b.where(here, b.constant(1, data_type="float32"), mask)
    return await b.build({"new_position": following, "new_mask": new_mask})


# --- the loop ------------------------------------------------------------------------------------------------


async def decode(env: Environment, weights: Weights, steps: int) -> tuple[list[int], int]:
    """The tokens, and how often bytes crossed between host and device while they were made."""
    context = (await env.open_device()).context
    decoder_graph, advance_graph = await build_decoder(context, weights), await build_advance(context)
    now, later = await create_state(env)
    tokens = []
    async with (
        await env.create_session(decoder_graph, enable_graph_capture=True) as decoder,
        await env.create_session(advance_graph, enable_graph_capture=True) as advance,
    ):
        before = env.statistics().host_copies
        for _ in range(steps):
            await step(decoder, advance, now, later)
            tokens.append(int((await now["token"].get_data())[0]))
        copies = env.statistics().host_copies - before
    for tensor in (*now.values(), *later.values()):
        tensor.dispose()
    decoder_graph.destroy()
    advance_graph.destroy()
    return tokens, copies


async def create_state(env: Environment) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return what a step reads, and what it writes for the next one."""
    mask = np.zeros((1, LONGEST), np.float32)
    mask[0, 0] = 1
    now = {
        "token": await env.create_tensor(np.array([FIRST], np.int32)),
        "position": await env.create_tensor(data_type="int32", dims=[1]),
        "mask": await env.create_tensor(mask),
        "keys": await env.create_tensor(data_type="float32", dims=[LONGEST, WIDTH]),
        "values": await env.create_tensor(data_type="float32", dims=[LONGEST, WIDTH]),
    }
    later = {
        name: await env.create_tensor(data_type=tensor.data_type, dims=tensor.dims) for name, tensor in now.items()
    }
    await env.drain()
    return now, later


async def step(
    decoder: InferenceSession, advance: InferenceSession, now: dict[str, Tensor], later: dict[str, Tensor]
) -> None:
    """Replay both graphs, then make what they have written what the next step reads."""
    await decoder.run(now, {"next": later["token"], "new_keys": later["keys"], "new_values": later["values"]})
    await advance.run(
        {name: now[name] for name in ("position", "mask")},
        {"new_position": later["position"], "new_mask": later["mask"]},
    )
    for name, tensor in now.items():
        await tensor.copy_from(later[name])


def decode_with_numpy(weights: Weights, steps: int) -> list[int]:
    """The same on the host, with lists for caches."""
    token, keys, values, tokens = FIRST, [], [], []
    for position in range(steps):
        hidden = weights.words[token] + weights.places[position]
        keys.append(hidden @ weights.key)
        values.append(hidden @ weights.value)
        scores = np.array(keys) @ (hidden @ weights.query) * WIDTH**-0.5
        attention = np.exp(scores - scores.max())
        hidden = hidden + attention / attention.sum() @ np.array(values)
        token = int(np.argmax(hidden @ weights.head))
        tokens.append(token)
    return tokens


async def main(*backend: str) -> None:
    """Decode, compare, and print."""
    weights = Weights.random()
    async with webnn_py.open_ml() as ml, Environment(ml, *backend) as env:
        tokens, copies = await decode(env, weights, LONGEST)
    print(*tokens)
    if tokens != decode_with_numpy(weights, LONGEST):
        raise SystemExit("numpy gives other tokens")
    print(f"{len(tokens)} tokens, equal to numpy's; {copies} copies between host and device")


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:2])
