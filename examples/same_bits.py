"""One small network, here in Python and in same_bits.js in JavaScript: both print the same bits.

python examples/same_bits.py
webnn-py node --backend numpy examples/same_bits.js
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import trio

import webnn_py
from webnn_py import MLGraphBuilder, MLOperand

Array = np.ndarray[Any, np.dtype[np.float32]]


def make_weights() -> Callable[[list[int]], Array]:
    """Weights of whole eighths from -2 to 2: a linear congruential generator, exact in both languages."""
    state = 716

    def number() -> float:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return state // 65536 % 33 / 8 - 2

    return lambda shape: np.array([number() for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)


def draw(builder: MLGraphBuilder, weights: Callable[[list[int]], Array]) -> dict[str, MLOperand]:
    """Convolution, pooling, a dense layer, softmax."""
    image = builder.input("image", data_type="float32", shape=[1, 1, 8, 8])
    kernel, bias = builder.constant(weights([4, 1, 3, 3])), builder.constant(weights([4]))
    edges = builder.conv2d(image, kernel, padding=[1, 1, 1, 1], bias=bias)
    pooled = builder.max_pool2d(builder.relu(edges), window_dimensions=[2, 2], strides=[2, 2])
    features = builder.tanh(builder.reshape(pooled, [1, 64]))
    dense, offset = builder.constant(weights([64, 5])), builder.constant(weights([5]))
    scores = builder.gemm(features, dense, c=offset, alpha=0.25)
    return {"scores": scores, "chances": builder.softmax(scores, 1)}


def bits(array: Any) -> str:
    """The bits of binary32 numbers."""
    return " ".join(f"{word:08x}" for word in array.reshape(-1).view(np.uint32))


async def main() -> None:
    """Build, run once, print."""
    weights = make_weights()
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        graph = await builder.build(draw(builder, weights))
        image = await context.create_buffer(data_type="float32", shape=[1, 1, 8, 8], writable=True)
        scores = await context.create_buffer(data_type="float32", shape=[1, 5], readable=True)
        chances = await context.create_buffer(data_type="float32", shape=[1, 5], readable=True)
        context.write_buffer(image, weights([1, 1, 8, 8]))
        context.dispatch(graph, {"image": image}, {"scores": scores, "chances": chances})
        print("scores ", bits(await context.read_buffer(scores)))
        print("chances", bits(await context.read_buffer(chances)))


if __name__ == "__main__":
    trio.run(main)
