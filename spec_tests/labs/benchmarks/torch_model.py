"""ONNX models of few kinds of nodes, computed by torch in a CUDA graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper


class TorchModel:
    """A model with the input ``x`` and one output, on the GPU, recorded once."""

    def __init__(self, model: bytes, data: np.ndarray) -> None:
        """Load a model for inputs that are like ``data``."""
        import torch  # noqa: PLC0415 - optional

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        graph = onnx.load_from_string(model).graph
        self._torch = torch
        self._nodes = [
            (node, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}) for node in graph.node
        ]
        self._weights: dict[str, Any] = {}
        for weight in graph.initializer:
            array = numpy_helper.to_array(weight)
            self._weights[weight.name] = array if array.dtype == np.int64 else torch.from_numpy(array.copy()).cuda()
        self._output = graph.output[0].name
        self._x = torch.from_numpy(data).cuda()
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(2):
                self._compute()
            stream.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=stream):
                self._y = self._compute()

    def run(self, data: np.ndarray) -> np.ndarray:
        """Return the result for an input."""
        self._x.copy_(self._torch.from_numpy(data))
        self._graph.replay()
        return self._y.cpu().numpy()

    def _compute(self):
        values = {**self._weights, "x": self._x}
        for node, attributes in self._nodes:
            operands = [values[name] for name in node.input]
            values[node.output[0]] = self._operators()[node.op_type](attributes, *operands)
        return values[self._output]

    def _operators(self) -> dict[str, Callable]:
        torch = self._torch
        functional = torch.nn.functional
        return {
            "Relu": lambda _a, x: torch.relu(x),
            "Add": lambda _a, x, y: x + y,
            "Mul": lambda _a, x, y: x * y,
            "Div": lambda _a, x, y: x / y,
            "Erf": lambda _a, x: torch.erf(x),
            "MatMul": lambda _a, x, y: torch.matmul(x, y),
            "Softmax": lambda a, x: torch.softmax(x, a["axis"]),
            "Transpose": lambda a, x: x.permute(*a["perm"]),
            "Reshape": lambda _a, x, shape: x.reshape(*shape.tolist()),
            "Concat": lambda a, *x: torch.cat(x, a["axis"]),
            "Flatten": lambda _a, x: x.flatten(1),
            "GlobalAveragePool": lambda _a, x: x.mean((2, 3), keepdim=True),
            "LayerNormalization": lambda _a, x, s, c: functional.layer_norm(x, x.shape[-1:], s, c),
            "MaxPool": lambda a, x: functional.max_pool2d(x, a["kernel_shape"], a["strides"], a["pads"][:2]),
            "Conv": lambda a, x, w, b: functional.conv2d(x, w, b, a["strides"], a["pads"][:2], groups=a["group"]),
        }
