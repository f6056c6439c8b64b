"""Whole models on a GPU, from input on the host to result on the host, by webnn_py, onnxruntime-webgpu and torch.

The models have the layers of well-known ones and random weights; all contenders are given the same ONNX file, and have
to agree. webnn_py also dispatches again and again without waiting; torch runs a CUDA graph without TF32.
"""

import statistics
from collections.abc import Callable
from functools import partial
from time import perf_counter

import attrs
import numpy as np
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.built import Built, difference
from spec_tests.labs.benchmarks.gpu_contenders import onnxruntime_session
from spec_tests.labs.benchmarks.measure import Contender, seconds_of
from spec_tests.labs.benchmarks.torch_model import TorchModel
from spec_tests.support.onnx_programs import make_model

RUNS = 31
WARM_UP = 0.5
"""Seconds: a GPU that has rested has a fifth of its clock, and keeps it for a quarter of a second."""

IN_A_ROW = 10


@attrs.define
class Network:
    """An ONNX model that is being written, layer by layer."""

    seed: int
    data_type: str = "float32"
    nodes: list = attrs.field(factory=list)
    weights: dict = attrs.field(factory=dict)

    def node(self, operator: str, *inputs: str, **attributes) -> str:
        """Add a node; return its output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        """Add a constant."""
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def weight(self, *shape: int, inner: int) -> str:
        """Add random weights that keep magnitudes where they sum over ``inner`` products."""
        noise = np.random.default_rng([self.seed, len(self.weights)]).standard_normal(2**18 + 1, np.float32)
        return self.constant(np.resize((noise * inner**-0.5).astype(self.data_type), shape))

    def model(self, input_shape: list[int], result: str) -> bytes:
        """Return the model with the input ``x``."""
        x = np.broadcast_to(np.zeros((), self.data_type), input_shape)
        return make_model(self.nodes, {"x": x, **self.weights}, [result], self.weights, opset=17)

    def conv(self, x: str, sizes: tuple[int, int], window: int, stride: int = 1, groups: int = 1) -> str:
        """Add a convolution from channels before to channels after, with a bias."""
        before, after = sizes
        inner = before // groups * window**2
        parameters = self.weight(after, before // groups, window, window, inner=inner), self.weight(after, inner=100)
        options = {"pads": [window // 2] * 4, "strides": [stride] * 2, "group": groups}
        return self.node("Conv", x, *parameters, **options)

    def linear(self, x: str, before: int, after: int) -> str:
        """Add a product with a matrix, and a bias."""
        product = self.node("MatMul", x, self.weight(before, after, inner=before))
        return self.node("Add", product, self.weight(after, inner=100))

    def normalized(self, x: str, width: int) -> str:
        """Add a layer normalization."""
        parameters = [self.constant(np.full(width, value, self.data_type)) for value in (1, 0)]
        return self.node("LayerNormalization", x, *parameters, axis=-1)

    def begin_images(self) -> str:
        """Add what residual networks begin with: a convolution and a pool; return 64 channels."""
        x = self.node("Relu", self.conv("x", (3, 64), 7, 2))
        return self.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])

    def classifier(self, x: str, channels: int, batch: int = 1) -> tuple[bytes, list[int]]:
        """Add the mean of each channel and a thousand classes; return the model and its input's shape, of 224²."""
        x = self.node("Flatten", self.node("GlobalAveragePool", x))
        shape = [batch, 3, 224, 224]
        return self.model(shape, self.linear(x, channels, 1000)), shape


def resnet_18() -> tuple[bytes, list[int]]:
    """Write the layers of ResNet-18, batch normalisations folded, for one image of 224 by 224."""
    net = Network(18)
    x, channels = net.begin_images(), 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width != 64 else 1
            inner = net.node("Relu", net.conv(x, (channels, width), 3, stride))
            inner = net.conv(inner, (width, width), 3)
            skipped = x if channels == width else net.conv(x, (channels, width), 1, stride)
            x, channels = net.node("Relu", net.node("Add", inner, skipped)), width
    return net.classifier(x, channels)


def resnet_50(batch: int, data_type: str = "float32") -> tuple[bytes, list[int]]:
    """Write the layers of ResNet-50 (strides in the 3×3 convolutions), batch normalisations folded, images of 224²."""
    net = Network(50, data_type)
    x, channels = net.begin_images(), 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width != 64 else 1
            inner = net.node("Relu", net.conv(x, (channels, width), 1))
            inner = net.node("Relu", net.conv(inner, (width, width), 3, stride))
            inner = net.conv(inner, (width, 4 * width), 1)
            skipped = x if block else net.conv(x, (channels, 4 * width), 1, stride)
            x, channels = net.node("Relu", net.node("Add", inner, skipped)), 4 * width
    return net.classifier(x, channels, batch)


def mobilenet_v1() -> tuple[bytes, list[int]]:
    """Write the layers of MobileNet v1, for one image of 224 by 224."""
    net = Network(1)
    limits = [net.constant(np.float32(limit)) for limit in (0, 6)]
    x, channels = net.node("Clip", net.conv("x", (3, 32), 3, 2), *limits), 32
    for width, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2)]:
        x = net.node("Clip", net.conv(x, (channels, channels), 3, stride, groups=channels), *limits)
        x = net.node("Clip", net.conv(x, (channels, width), 1), *limits)
        channels = width
    return net.classifier(x, channels)


def encoder(
    layers: int = 6, width: int = 384, *, batch: int = 1, tokens: int = 128, data_type: str = "float32"
) -> tuple[bytes, list[int]]:
    """Write the layers of an encoder like MiniLM and BERT, for the embeddings of tokens; by default MiniLM-L6's."""
    net, heads = Network(6, data_type), 12
    split = net.constant(np.array([batch, tokens, heads, width // heads]))
    merged = net.constant(np.array([batch, tokens, width]))
    scale = net.constant(np.array((width // heads) ** -0.5, data_type))
    half, one, root = (net.constant(np.array(number, data_type)) for number in (0.5, 1, 2**0.5))

    x = net.normalized("x", width)
    for _ in range(layers):
        query, key, value = (
            net.node("Transpose", net.node("Reshape", net.linear(x, width, width), split), perm=permutation)
            for permutation in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = net.node("Softmax", net.node("Mul", net.node("MatMul", query, key), scale), axis=-1)
        mixed = net.node("Transpose", net.node("MatMul", scores, value), perm=[0, 2, 1, 3])
        x = net.node("Add", x, net.linear(net.node("Reshape", mixed, merged), width, width))
        x = net.normalized(x, width)
        inner = net.linear(x, width, 4 * width)
        erf = net.node("Add", net.node("Erf", net.node("Div", inner, root)), one)
        inner = net.node("Mul", net.node("Mul", inner, half), erf)
        x = net.normalized(net.node("Add", x, net.linear(inner, 4 * width, width)), width)
    return net.model([batch, tokens, width], x), [batch, tokens, width]


def decoder_step(
    layers: int = 16, width: int = 2048, cached: int = 1024, data_type: str = "float16"
) -> tuple[bytes, list[int]]:
    """Write the step of a token through a decoder whose keys and values of the tokens before are known."""
    net = Network(16, data_type)
    heads = width // 128
    split, merged = net.constant(np.array([1, 1, heads, 128])), net.constant(np.array([1, 1, width]))
    scale = net.constant(np.array(128**-0.5, data_type))

    def in_heads(x: str) -> str:
        projected = net.node("MatMul", x, net.weight(width, width, inner=width))
        return net.node("Transpose", net.node("Reshape", projected, split), perm=[0, 2, 1, 3])

    x = "x"
    for _ in range(layers):
        inner = net.normalized(x, width)
        query, *pair = (in_heads(inner) for _ in range(3))
        key, value = (net.node("Concat", net.weight(1, heads, cached, 128, inner=1), new, axis=2) for new in pair)
        scores = net.node("MatMul", query, net.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net.node("Softmax", net.node("Mul", scores, scale), axis=-1)
        mixed = net.node("Reshape", net.node("Transpose", net.node("MatMul", scores, value), perm=[0, 2, 1, 3]), merged)
        x = net.node("Add", x, net.node("MatMul", mixed, net.weight(width, width, inner=width)))
        inner = net.node("Relu", net.linear(net.normalized(x, width), width, 4 * width))
        x = net.node("Add", x, net.linear(inner, 4 * width, width))
    return net.model([1, 1, width], net.normalized(x, width)), [1, 1, width]


def recurrent(steps: int = 900, features: int = 128, hidden: int = 32) -> tuple[bytes, list[int]]:
    """Write two layers of bidirectional GRUs over a long sequence, as models of speech have them."""
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
    "ResNet-50, batch 1": partial(resnet_50, 1),
    "ResNet-50, batch 16": partial(resnet_50, 16),
    "ResNet-50, batch 16, float16": partial(resnet_50, 16, "float16"),
    "BERT-base, 128 tokens": partial(encoder, 12, 768),
    "BERT-base, 8 × 128 tokens": partial(encoder, 12, 768, batch=8),
    "BERT-base, 8 × 128 tokens, float16": partial(encoder, 12, 768, batch=8, data_type="float16"),
    "decoder step, 16 layers of 2048, float16, cache of 1,024": decoder_step,
    "2 bidirectional GRUs of 32, 900 steps": recurrent,
}


async def median_of(run: Contender) -> float:
    """Return the median seconds of a run, on a GPU that is warm."""
    samples: list[float] = []
    warm = perf_counter() + WARM_UP
    while len(samples) < RUNS:
        is_warm = perf_counter() > warm
        seconds = await seconds_of(run)
        samples += [seconds] * is_warm
    return statistics.median(samples)


async def time_ours(ml: webnn_py.ML, model: bytes, data: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Return median seconds of write, dispatch and awaited read, and of a dispatch among many; and the result."""
    context = await ml.create_context(backend="wgpu")
    built = await Built.from_model(context, model, data)
    trip = await median_of(built.trip)
    rows = [await built.run(IN_A_ROW) / IN_A_ROW for _ in range(4)]
    (result,) = await built.trip()
    context.destroy()
    return trip, statistics.median(rows[1:]), result


async def time_onnxruntime(model: bytes, data: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the median seconds of a run of a session, and the result."""
    session = onnxruntime_session(model, optimized=True)
    return await median_of(lambda: session.run(None, {"x": data})), session.run(None, {"x": data})[0]


async def time_torch(model: bytes, data: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the median seconds of a copy to the GPU, a replay of a CUDA graph and a copy back, and the result."""
    peer = TorchModel(model, data)
    return await median_of(lambda: peer.run(data)), peer.run(data)


def check_agreement(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Raise where two results are not those of the same model."""
    if not (off := difference(ours, theirs)) < (1e-3 if ours.dtype == np.float32 else 3e-2):
        raise AssertionError(f"the results differ by {off:.2g} of the largest")
