"""A long short-term memory, as one operator and step by step: the same weights, the same states.

``lstm`` takes a whole sequence. A graph of one ``lstm_cell`` takes one step, and two pairs of buffers that change
places carry the states from step to step on the device: so a sequence can be followed whose end is not known yet.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import trio

import webnn_py
from webnn_py import MLBuffer, MLContext, MLGraph, MLGraphBuilder

STEPS, BATCH, FEATURES, HIDDEN = 5, 1, 3, 4
DICE = np.random.default_rng(716)
SEQUENCE = DICE.standard_normal((STEPS, BATCH, FEATURES), np.float32)
WEIGHT = DICE.standard_normal((4 * HIDDEN, FEATURES), np.float32)
RECURRENT_WEIGHT = DICE.standard_normal((4 * HIDDEN, HIDDEN), np.float32)


async def build_whole(context: MLContext) -> MLGraph:
    """All steps in one operator; a weight has an axis for directions, here one."""
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=[STEPS, BATCH, FEATURES])
    weights = b.constant(WEIGHT[np.newaxis]), b.constant(RECURRENT_WEIGHT[np.newaxis])
    _, _, hidden = b.lstm(x, *weights, STEPS, HIDDEN, return_sequence=True)
    return await b.build({"hidden": hidden})


async def build_step(context: MLContext) -> MLGraph:
    """One step: the states go in and come out."""
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=[BATCH, FEATURES])
    hidden, cell = (b.input(name, data_type="float32", shape=[BATCH, HIDDEN]) for name in ("hidden", "cell"))
    hidden, cell = b.lstm_cell(x, b.constant(WEIGHT), b.constant(RECURRENT_WEIGHT), hidden, cell, HIDDEN)
    return await b.build({"hidden": hidden, "cell": cell})


async def states_of(context: MLContext) -> dict[str, MLBuffer]:
    """Buffers for the states, zero at first."""
    return {
        name: await context.create_buffer(data_type="float32", shape=[BATCH, HIDDEN], readable=True)
        for name in ("hidden", "cell")
    }


async def show(backend: str | None) -> None:
    """Run both ways and compare the hidden state of every step."""
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        whole, step = await build_whole(context), await build_step(context)
        sequence = await context.create_buffer(data_type="float32", shape=SEQUENCE.shape, writable=True)
        all_hidden = await context.create_buffer(data_type="float32", shape=[STEPS, 1, BATCH, HIDDEN], readable=True)
        context.write_buffer(sequence, SEQUENCE)
        context.dispatch(whole, {"x": sequence}, {"hidden": all_hidden})
        expected = (await context.read_buffer(all_hidden))[:, 0]

        x = await context.create_buffer(data_type="float32", shape=[BATCH, FEATURES], writable=True)
        states, following = await states_of(context), await states_of(context)
        for number, item in enumerate(SEQUENCE):
            context.write_buffer(x, item)
            context.dispatch(step, {"x": x, **states}, following)
            hidden = await context.read_buffer(following["hidden"])
            same = np.allclose(hidden, expected[number], rtol=1e-5, atol=1e-6)
            print(
                f"step {number + 1}: {' '.join(f'{value:6.3f}' for value in hidden[0])}  {'same' if same else 'other'}"
            )
            states, following = following, states


def main(arguments: Sequence[str] | None = None) -> None:
    """Show it on a device."""
    parser = argparse.ArgumentParser(description="Compare lstm with lstm_cell step by step.")
    parser.add_argument("--backend")
    trio.run(show, parser.parse_args(arguments).backend)


if __name__ == "__main__":
    main()
