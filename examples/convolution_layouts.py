"""A convolution block in both layouts of images: channels first (nchw) and channels last (nhwc).

Convolution, bias, relu and pooling are drawn once; the layouts are options, the filter is transposed to match, and one
transposition makes the results comparable. The weights are small whole numbers, so that sums are exact in any order.
"""

import argparse
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import trio

import webnn_py
from webnn_py import MLContext, MLGraph, MLGraphBuilder

Array = np.ndarray[Any, np.dtype[np.float32]]
Layout = Literal["nchw", "nhwc"]

DICE = np.random.default_rng(716)
IMAGE = DICE.integers(-4, 5, (1, 3, 12, 12)).astype(np.float32)
FILTER = DICE.integers(-2, 3, (8, 3, 3, 3)).astype(np.float32)
BIAS = DICE.integers(-8, 9, 8).astype(np.float32)


def channels_last(image: Array) -> Array:
    """From [N, C, H, W] to [N, H, W, C]."""
    return np.ascontiguousarray(image.transpose(0, 2, 3, 1))


async def build(context: MLContext, layout: Layout) -> MLGraph:
    """The block; bytes of the filter are permuted as the layout wants them."""
    builder = MLGraphBuilder(context)
    first = layout == "nchw"
    shape = [1, 3, 12, 12] if first else [1, 12, 12, 3]
    image = builder.input("image", data_type="float32", shape=shape)
    weights = builder.constant(FILTER if first else channels_last(FILTER))
    features = builder.conv2d(
        image,
        weights,
        bias=builder.constant(BIAS),
        padding=[1, 1, 1, 1],
        input_layout=layout,
        filter_layout="oihw" if first else "ohwi",
        label=layout,
    )
    pooled = builder.max_pool2d(builder.relu(features), window_dimensions=[2, 2], strides=[2, 2], layout=layout)
    return await builder.build({"features": pooled})


async def run(context: MLContext, layout: Layout, image: Array) -> Array:
    """Build and run the block once."""
    graph = await build(context, layout)
    given = await context.create_buffer(data_type="float32", shape=image.shape, writable=True)
    made = graph.output_descriptors["features"]
    features = await context.create_buffer(data_type="float32", shape=made.shape, readable=True)
    context.write_buffer(given, image)
    context.dispatch(graph, {"image": given}, {"features": features})
    result: Array = await context.read_buffer(features)
    for thing in (graph, given, features):
        thing.destroy()
    print(f"{layout}: {list(image.shape)} -> {list(result.shape)}, sum {result.sum():.0f}")
    return result


async def show(backend: str | None) -> None:
    """Run both, and compare."""
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        first = await run(context, "nchw", IMAGE)
        last = await run(context, "nhwc", channels_last(IMAGE))
        print("equal" if np.array_equal(channels_last(first), last) else "different")


def main(arguments: Sequence[str] | None = None) -> None:
    """Show it on a device."""
    parser = argparse.ArgumentParser(description="Run a convolution block in both layouts.")
    parser.add_argument("--backend")
    trio.run(show, parser.parse_args(arguments).backend)


if __name__ == "__main__":
    main()
