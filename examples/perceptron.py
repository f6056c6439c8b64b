"""A perceptron of two layers by hand: XOR, which no single layer can compute.

The hidden layer says "at least one" and "both"; the output is the first without the second. A layer is a product, an
addition and a step, so the whole network is six operators, and all four cases are rows of one product.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import trio

import webnn_py
from webnn_py import MLGraphBuilder, MLOperand

CASES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)


def layer(builder: MLGraphBuilder, x: MLOperand, weights: list[list[float]], bias: list[float], name: str) -> MLOperand:
    """Add up what comes in by its weights; a unit is 1 where the sum is over 0."""
    product = builder.matmul(x, builder.constant(np.array(weights, np.float32)), label=name)
    total = builder.add(product, builder.constant(np.array(bias, np.float32)))
    return builder.cast(builder.greater(total, builder.constant(0, data_type="float32")), "float32")


async def show(backend: str | None) -> None:
    """Build the network, give it all cases at once, and print its table."""
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[4, 2])
        hidden = layer(builder, x, [[1, 1], [1, 1]], [-0.5, -1.5], "at least one, both")
        graph = await builder.build({"y": layer(builder, hidden, [[1], [-1]], [-0.5], "the first alone")})

        cases = await context.create_buffer(data_type="float32", shape=[4, 2], writable=True)
        answers = await context.create_buffer(data_type="float32", shape=[4, 1], readable=True)
        context.write_buffer(cases, CASES)
        context.dispatch(graph, {"x": cases}, {"y": answers})
        for case, answer in zip(CASES, await context.read_buffer(answers), strict=True):
            print(f"{case[0]:.0f} xor {case[1]:.0f} = {answer[0]:.0f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Show it on a device."""
    parser = argparse.ArgumentParser(description="Compute XOR with a perceptron of two layers.")
    parser.add_argument("--backend")
    trio.run(show, parser.parse_args(arguments).backend)


if __name__ == "__main__":
    main()
