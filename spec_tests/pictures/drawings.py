"""Graphs that are looked at."""

import attrs
import numpy as np

from webnn_py import GraphPicture, MLGraph, MLGraphBuilder, MLOperand, MLPromise, pictures


@attrs.frozen
class Drawing:
    """A builder, and what it is to build."""

    builder: MLGraphBuilder
    outputs: dict[str, MLOperand]

    def picture(self) -> GraphPicture:
        return pictures.picture(self.outputs)

    def build(self, label: str = "") -> MLPromise[MLGraph]:
        return self.builder.build(self.outputs, label=label, keep_source=True)

    async def built_picture(self) -> GraphPicture:
        """Build the graph, and return the picture of what is built."""
        return pictures.picture(await self.build())


def draw_residual_block(context, label="first"):
    """A convolution whose result is added to its input, with a bias that is known, a view and a product."""
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=[1, 4, 8, 8])
    bias = b.add(b.constant(np.ones((4, 1, 1), np.float32)), b.constant(0.5, data_type="float32"))
    kernel = b.constant(np.ones((4, 4, 3, 3), np.float32))
    image = b.relu(b.add(b.conv2d(x, kernel, padding=[1, 1, 1, 1], label=label), bias))
    flat = b.reshape(b.add(image, x), [16, 16])
    halves = b.split(b.matmul(flat, b.constant(np.ones((16, 8), np.float32))), 2, axis=1, label="halves")
    return Drawing(b, {"y": b.softmax(halves[1], 1), "z": image})


def draw_relu(context, name="x", label=""):
    """One operator; its output has the given name if the input has."""
    b = MLGraphBuilder(context)
    x = b.input(name, data_type="float32", shape=[2])
    return Drawing(b, {"y" if name == "x" else name: b.relu(x, label=label)})


HOSTILE = [
    '"',
    "`",
    "<b>&amp;</b>",
    "-->",
    "a\nb",
    "\\",
    "\\n",
    "];evil",
    '"]; end',
    "</svg><script>",
    "#quot;",
    "%% {",
    "\u202e",
    "語",
    "{x|y}",
    "'",
    '\\"',
]
