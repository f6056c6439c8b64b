"""Small random graphs, and what numpy computes for them."""

import attrs
import numpy as np

from webnn_py import MLContext, MLGraphBuilder, MLOperand
from webnn_py.core.api.graph import MLGraph

UNARY = {
    "abs": np.abs,
    "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "identity": lambda x: x,
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
LEAST, MOST = -4, 4
"""Between these all values stay, by a clamp where an operator may leave them."""


@attrs.frozen
class Program:
    """A chain of operators on a matrix.

    Attributes:
        shape: of the input, float32.
        steps: an operator's name, and the data that it takes besides: a matrix or a vector.
    """

    shape: tuple[int, int]
    steps: tuple[tuple[str, np.ndarray | None], ...]

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "Program":
        """One of some billions."""
        rows, columns = (int(number) for number in rng.integers(1, 41, 2))
        shape, steps = (rows, columns), []
        for _ in range(rng.integers(1, 7)):
            kind = rng.choice(["unary", "binary", "matmul", "softmax", "transpose", "reduce_max"])
            if kind == "unary":
                steps.append((str(rng.choice(list(UNARY))), None))
            elif kind == "binary":
                data = rng.integers(LEAST, MOST, columns).astype(np.float32)
                steps.append((str(rng.choice(list(BINARY))), data))
            elif kind == "matmul":
                inner, columns = columns, int(rng.integers(1, 41))
                steps.append(("matmul", rng.integers(-1, 2, (inner, columns)).astype(np.float32)))
            else:
                rows, columns = {"transpose": (columns, rows), "reduce_max": (rows, 1)}.get(kind, (rows, columns))
                steps.append((str(kind), None))
        return cls(shape, tuple(steps))

    def input(self, rng: np.random.Generator) -> np.ndarray:
        """Data to compute with."""
        return rng.uniform(LEAST, MOST, self.shape).astype(np.float32)

    def expected(self, x: np.ndarray) -> np.ndarray:
        """Return what numpy computes."""
        for name, data in self.steps:
            if name in UNARY:
                x = UNARY[name](x)
            elif name in BINARY:
                x = BINARY[name](x, data)
            elif name == "matmul":
                x = x @ data
            elif name == "softmax":
                powers = np.exp(x - x.max(1, keepdims=True))
                x = powers / powers.sum(1, keepdims=True)
            else:
                x = x.T if name == "transpose" else x.max(1, keepdims=True)
            x = np.clip(x, LEAST, MOST)
        return x

    async def build(self, context: MLContext) -> MLGraph:
        """The graph; its input is called x and its output y."""
        builder = MLGraphBuilder(context)
        x: MLOperand = builder.input("x", data_type="float32", shape=self.shape)
        for name, data in self.steps:
            if data is not None:
                x = getattr(builder, name)(x, builder.constant(data))
            elif name == "softmax":
                x = builder.softmax(x, 1)
            elif name == "reduce_max":
                x = builder.reduce_max(x, axes=[1], keep_dimensions=True)
            else:
                x = getattr(builder, name)(x)
            x = builder.clamp(x, min_value=LEAST, max_value=MOST)
        return await builder.build({"y": x})
