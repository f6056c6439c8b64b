"""Whole models on a GPU, from input on the host to result on the host, by webnn_py and by onnxruntime-webgpu.

The models have the layers of well-known ones and random weights; both contenders are given the same ONNX file, and have
to agree.
"""

import statistics
from collections.abc import Callable
from functools import partial
from time import perf_counter

import attrs
import numpy as np

import webnn_py
from spec_tests.labs.benchmarks.gpu_contenders import onnxruntime_session
from webnn_py import MLGraphBuilder

RUNS = 40
WARM_UP = 10


@attrs.define
class Network:
    """An ONNX model that is being written, layer by layer."""

    seed: int
    data_type: str = "float32"
    nodes: list = attrs.field(factory=list)
    weights: list = attrs.field(factory=list)

    def node(self, operator: str, *inputs: str, **attributes) -> str:
        """Add a node; returns its output."""
        from onnx import helper  # noqa: PLC0415 - optional

        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        """Add a constant."""
        from onnx import numpy_helper  # noqa: PLC0415 - optional

        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int, inner: int) -> str:
        """Add random weights that keep magnitudes where they sum over ``inner`` products."""
        rng = np.random.default_rng([self.seed, len(self.weights)])
        return self.constant((rng.standard_normal(shape) * inner**-0.5).astype(self.data_type))

    def model(self, input_shape: list[int], result: str) -> bytes:
        """The model with the input ``x``."""
        from onnx import TensorProto, helper  # noqa: PLC0415 - optional

        kind = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}[self.data_type]
        x = helper.make_tensor_value_info("x", kind, input_shape)
        y = helper.make_tensor_value_info(result, kind, None)
        graph = helper.make_graph(self.nodes, "network", [x], [y], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return model.SerializeToString()

    def conv(self, x: str, sizes: tuple[int, int], window: int, stride: int = 1, groups: int = 1) -> str:
        """A convolution from so many channels to so many, with a bias."""
        before, after = sizes
        inner = before // groups * window**2
        parameters = self.weight(after, before // groups, window, window, inner=inner), self.weight(after, inner=100)
        options = {"pads": [window // 2] * 4, "strides": [stride] * 2, "group": groups}
        return self.node("Conv", x, *parameters, **options)

    def linear(self, x: str, before: int, after: int) -> str:
        """A product with a matrix, and a bias."""
        product = self.node("MatMul", x, self.weight(before, after, inner=before))
        return self.node("Add", product, self.weight(after, inner=100))


def resnet_18() -> tuple[bytes, list[int]]:
    """The layers of ResNet-18, batch normalisations folded, for one image of 224 by 224."""
    net = Network(18)
    x = net.node("Relu", net.conv("x", (3, 64), 7, 2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width != 64 else 1
            inner = net.node("Relu", net.conv(x, (channels, width), 3, stride))
            inner = net.conv(inner, (width, width), 3)
            skipped = x if channels == width else net.conv(x, (channels, width), 1, stride)
            x, channels = net.node("Relu", net.node("Add", inner, skipped)), width
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model([1, 3, 224, 224], net.linear(x, 512, 1000)), [1, 3, 224, 224]


def mobilenet_v1() -> tuple[bytes, list[int]]:
    """The layers of MobileNet v1, for one image of 224 by 224."""
    net = Network(1)
    limits = [net.constant(np.float32(limit)) for limit in (0, 6)]
    x, channels = net.node("Clip", net.conv("x", (3, 32), 3, 2), *limits), 32
    for width, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2)]:
        x = net.node("Clip", net.conv(x, (channels, channels), 3, stride, groups=channels), *limits)
        x = net.node("Clip", net.conv(x, (channels, width), 1), *limits)
        channels = width
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model([1, 3, 224, 224], net.linear(x, channels, 1000)), [1, 3, 224, 224]


def encoder(
    layers: int = 6, width: int = 384, *, batch: int = 1, tokens: int = 128, data_type: str = "float32"
) -> tuple[bytes, list[int]]:
    """The layers of an encoder of MiniLM's and BERT's kind, for the embeddings of tokens; MiniLM-L6's as it is."""
    net, heads = Network(6, data_type), 12
    split = net.constant(np.array([batch, tokens, heads, width // heads]))
    merged = net.constant(np.array([batch, tokens, width]))
    scale = net.constant(np.array((width // heads) ** -0.5, data_type))
    half, one, root = (net.constant(np.array(number, data_type)) for number in (0.5, 1, 2**0.5))

    def normalized(x: str) -> str:
        parameters = [net.constant(np.full(width, value, data_type)) for value in (1, 0)]
        return net.node("LayerNormalization", x, *parameters, axis=-1)

    x = normalized("x")
    for _ in range(layers):
        query, key, value = (
            net.node("Transpose", net.node("Reshape", net.linear(x, width, width), split), perm=permutation)
            for permutation in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = net.node("Softmax", net.node("Mul", net.node("MatMul", query, key), scale), axis=-1)
        mixed = net.node("Transpose", net.node("MatMul", scores, value), perm=[0, 2, 1, 3])
        x = normalized(net.node("Add", x, net.linear(net.node("Reshape", mixed, merged), width, width)))
        inner = net.linear(x, width, 4 * width)
        erf = net.node("Add", net.node("Erf", net.node("Div", inner, root)), one)
        inner = net.node("Mul", net.node("Mul", inner, half), erf)
        x = normalized(net.node("Add", x, net.linear(inner, 4 * width, width)))
    return net.model([batch, tokens, width], x), [batch, tokens, width]


def recurrent(steps: int = 900, features: int = 128, hidden: int = 32) -> tuple[bytes, list[int]]:
    """Two layers of bidirectional GRUs over a long sequence, as models of speech have them."""
    net = Network(3)
    x, inner = "x", features
    for _ in range(2):
        weights = net.weight(2, 3 * hidden, inner, inner=inner), net.weight(2, 3 * hidden, hidden, inner=hidden)
        bias = net.weight(2, 6 * hidden, inner=100)
        options = {"hidden_size": hidden, "direction": "bidirectional", "linear_before_reset": 1}
        states = net.node("Transpose", net.node("GRU", x, *weights, bias, **options), perm=[0, 2, 1, 3])
        x, inner = net.node("Reshape", states, net.constant(np.array([steps, 1, 2 * hidden]))), 2 * hidden
    return net.model([steps, 1, features], net.linear(x, inner, 8)), [steps, 1, features]


MODELS: dict[str, Callable[[], tuple[bytes, list[int]]]] = {
    "ResNet-18, 224²": resnet_18,
    "MobileNet v1, 224²": mobilenet_v1,
    "MiniLM-L6 encoder, 128 tokens": encoder,
    "BERT-base, 128 tokens": partial(encoder, 12, 768),
    "BERT-base, 8 × 128 tokens": partial(encoder, 12, 768, batch=8),
    "BERT-base, 8 × 128 tokens, float16": partial(encoder, 12, 768, batch=8, data_type="float16"),
    "2 bidirectional GRUs of 32, 900 steps": recurrent,
}


async def time_ours(ml: webnn_py.ML, model: bytes, data: np.ndarray) -> tuple[float, np.ndarray]:
    """Median seconds of write, dispatch and awaited read, and the result."""
    from webnn_py.onnx_models import OnnxModel  # noqa: PLC0415 - optional

    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(model).convert(builder, {"x": list(data.shape)}))
    ((name, output),) = graph.output_descriptors.items()
    x = await context.create_buffer(data_type=data.dtype, shape=data.shape, writable=True)
    y = await context.create_buffer(data_type=output.data_type, shape=output.shape, readable=True)
    samples = []
    for _ in range(RUNS + WARM_UP):
        started = perf_counter()
        context.write_buffer(x, data)
        context.dispatch(graph, {"x": x}, {name: y})
        result = await context.read_buffer(y)
        samples.append(perf_counter() - started)
    context.destroy()
    return statistics.median(samples[WARM_UP:]), result


def time_onnxruntime(model: bytes, data: np.ndarray) -> tuple[float, np.ndarray]:
    """Likewise of a run of a session."""
    session = onnxruntime_session(model, optimized=True)
    samples = []
    for _ in range(RUNS + WARM_UP):
        started = perf_counter()
        (result,) = session.run(None, {"x": data})
        samples.append(perf_counter() - started)
    return statistics.median(samples[WARM_UP:]), result


def check_agreement(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Raise where two results are not those of the same model."""
    most = 1e-3 if ours.dtype == np.float32 else 3e-2
    off = float(np.abs(ours.astype(float) - theirs.astype(float)).max() / np.abs(theirs.astype(float)).max())
    if not off < most:
        raise AssertionError(f"the results differ by {off:.2g} of the largest")
