"""ResNet-50, BERT-base and a step of a decoder: ``python -m spec_tests.labs.benchmarks.gpu_large_models [WORD…]``.

From input on the host to result on the host, and, of webnn_py, dispatched again and again without waiting; beside
onnxruntime-webgpu and torch (a CUDA graph without TF32). Weights are random, and all contenders compute one ONNX model.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from time import perf_counter

import attrs
import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks.gpu_contenders import onnxruntime_session
from spec_tests.labs.benchmarks.gpu_models import Network, encoder
from spec_tests.labs.benchmarks.measure import as_text
from spec_tests.labs.benchmarks.torch_model import TorchModel
from webnn_py import MLGraphBuilder

RUNS = 31
WARM_UP = 0.5
"""Seconds: a GPU that has rested has a fifth of its clock, and keeps it for a quarter of a second."""

IN_A_ROW = 10


@attrs.define
class TypedNetwork(Network):
    """A model of float16 or float32."""

    data_type: str = "float32"

    def weight(self, *shape: int, inner: int) -> str:
        noise = np.random.default_rng([self.seed, len(self.weights)]).standard_normal(2**18 + 1, np.float32)
        return self.constant(np.resize((noise * inner**-0.5).astype(self.data_type), shape))

    def model(self, input_shape: list[int], result: str) -> bytes:
        from onnx import TensorProto, helper  # noqa: PLC0415 - optional

        kind = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}[self.data_type]
        x = helper.make_tensor_value_info("x", kind, input_shape)
        graph = helper.make_graph(
            self.nodes, "network", [x], [helper.make_tensor_value_info(result, kind, None)], self.weights
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return model.SerializeToString()


def resnet_50(batch: int, data_type: str = "float32") -> tuple[bytes, list[int]]:
    """The layers of ResNet-50 (strides in the 3×3 convolutions), batch normalisations folded, images of 224²."""
    net = TypedNetwork(50, data_type=data_type)
    x = net.node("Relu", net.conv("x", (3, 64), 7, 2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width != 64 else 1
            inner = net.node("Relu", net.conv(x, (channels, width), 1))
            inner = net.node("Relu", net.conv(inner, (width, width), 3, stride))
            inner = net.conv(inner, (width, 4 * width), 1)
            skipped = x if block else net.conv(x, (channels, 4 * width), 1, stride)
            x, channels = net.node("Relu", net.node("Add", inner, skipped)), 4 * width
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    shape = [batch, 3, 224, 224]
    return net.model(shape, net.linear(x, 2048, 1000)), shape


def decoder_step(
    layers: int = 16, width: int = 2048, cached: int = 1024, data_type: str = "float16"
) -> tuple[bytes, list[int]]:
    """A token through a decoder whose keys and values of the tokens before are known."""
    net = TypedNetwork(16, data_type=data_type)
    heads = width // 128
    split, merged = net.constant(np.array([1, 1, heads, 128])), net.constant(np.array([1, 1, width]))
    scale = net.constant(np.array(128**-0.5, data_type))

    def normalized(x: str) -> str:
        parameters = [net.constant(np.full(width, value, data_type)) for value in (1, 0)]
        return net.node("LayerNormalization", x, *parameters, axis=-1)

    def in_heads(x: str) -> str:
        projected = net.node("MatMul", x, net.weight(width, width, inner=width))
        return net.node("Transpose", net.node("Reshape", projected, split), perm=[0, 2, 1, 3])

    x = "x"
    for _ in range(layers):
        inner = normalized(x)
        query, *pair = (in_heads(inner) for _ in range(3))
        key, value = (net.node("Concat", net.weight(1, heads, cached, 128, inner=1), new, axis=2) for new in pair)
        scores = net.node("MatMul", query, net.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net.node("Softmax", net.node("Mul", scores, scale), axis=-1)
        mixed = net.node("Reshape", net.node("Transpose", net.node("MatMul", scores, value), perm=[0, 2, 1, 3]), merged)
        x = net.node("Add", x, net.node("MatMul", mixed, net.weight(width, width, inner=width)))
        inner = net.node("Relu", net.linear(normalized(x), width, 4 * width))
        x = net.node("Add", x, net.linear(inner, 4 * width, width))
    return net.model([1, 1, width], normalized(x)), [1, 1, width]


MODELS: dict[str, Callable[[], tuple[bytes, list[int]]]] = {
    "ResNet-50, batch 1": lambda: resnet_50(1),
    "ResNet-50, batch 16": lambda: resnet_50(16),
    "ResNet-50, batch 16, float16": lambda: resnet_50(16, "float16"),
    "BERT-base, 128 tokens": partial(encoder, 12, 768),
    "BERT-base, batch 8": partial(encoder, 12, 768, batch=8),
    "BERT-base, batch 8, float16": partial(encoder, 12, 768, batch=8, data_type="float16"),
    "decoder step, 16 layers of 2048, float16, cache of 1,024": decoder_step,
}


def median_of(run: Callable[[], object]) -> float:
    """Seconds of a run."""
    samples = []
    warm = perf_counter() + WARM_UP
    while len(samples) < RUNS:
        started = perf_counter()
        run()
        if started > warm:
            samples.append(perf_counter() - started)
    return statistics.median(samples)


async def time_ours(ml: webnn_py.ML, model: bytes, data: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Median seconds of write, dispatch and awaited read, of a dispatch among many, and the result."""
    from webnn_py.onnx_models import OnnxModel  # noqa: PLC0415 - optional

    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(model).convert(builder, {"x": list(data.shape)}))
    ((name, output),) = graph.output_descriptors.items()
    x = await context.create_buffer(data_type=str(data.dtype), shape=data.shape, writable=True)
    y = await context.create_buffer(data_type=output.data_type, shape=output.shape, readable=True)
    trips, rows = [], []
    warm = perf_counter() + WARM_UP
    while len(trips) < RUNS:
        started = perf_counter()
        context.write_buffer(x, data)
        context.dispatch(graph, {"x": x}, {name: y})
        result = await context.read_buffer(y)
        if started > warm:
            trips.append(perf_counter() - started)
    for _ in range(4):
        started = perf_counter()
        for _ in range(IN_A_ROW):
            context.dispatch(graph, {"x": x}, {name: y})
        await context.drain()
        rows.append((perf_counter() - started) / IN_A_ROW)
    context.destroy()
    return statistics.median(trips), statistics.median(rows[1:]), np.asarray(result)


def time_onnxruntime(model: bytes, data: np.ndarray) -> tuple[float, np.ndarray]:
    """Median seconds of a run of a session, and the result."""
    session = onnxruntime_session(model, optimized=True)
    return median_of(lambda: session.run(None, {"x": data})), session.run(None, {"x": data})[0]


def time_torch(model: bytes, data: np.ndarray) -> tuple[float, np.ndarray]:
    """Median seconds of a copy to the GPU, a replay of a CUDA graph and a copy from the GPU, and the result."""
    peer = TorchModel(model, data)
    return median_of(lambda: peer.run(data)), peer.run(data)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of two results, as a part of the largest number."""
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


async def measure(words: list[str], peers: list[str]) -> None:
    """Time models, and print a table as it comes."""
    print(f"| | webnn_py | in a row | {' | '.join(peers)} |\n|{'---|' * (3 + len(peers))}")
    async with webnn_py.open_ml() as ml:
        for name, make in MODELS.items():
            if words and not any(word in name for word in words):
                continue
            model, shape = make()
            data_type = "float16" if "float16" in name else "float32"
            data = np.random.default_rng(3).standard_normal(shape, np.float32).astype(data_type)
            trip, row, result = await time_ours(ml, model, data)
            cells = [name, as_text(trip), as_text(row)]
            for peer in peers:
                try:
                    seconds, theirs = PEERS[peer](model, data)
                    cells.append(f"{as_text(seconds)} (off by {difference(result, theirs):.1g})")
                except Exception as error:  # noqa: BLE001 - a peer may fail in any way
                    cells.append(f"{type(error).__name__}: {str(error)[:80]}")
            print(f"| {' | '.join(cells)} |", flush=True)


PEERS: dict[str, Callable[[bytes, np.ndarray], tuple[float, np.ndarray]]] = {
    "onnxruntime-webgpu": time_onnxruntime,
    "torch": time_torch,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks.gpu_large_models", description=__doc__)
    parser.add_argument("words", nargs="*", help="only what has one of these in its name")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS), help="beside whom")
    options = parser.parse_args()
    trio.run(measure, options.words, options.peers)


if __name__ == "__main__":
    main()
