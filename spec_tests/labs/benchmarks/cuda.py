"""Whole models on an NVIDIA GPU, host to host: on CUDA's provider, on WebGPU, and by onnxruntime alone.

``python -m spec_tests.labs.benchmarks.cuda [WORDS …]`` measures the models of ``gpu_models`` that have a word in their
names. onnxruntime's own sessions have bound device memory and no TF32, without and with a CUDA graph.
"""

import statistics
from collections.abc import Callable
from functools import partial

import attrs
import numpy as np
import onnxruntime
import trio

import webnn_py
from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.gpu_models import MODELS, check_agreement, median_of
from spec_tests.labs.benchmarks.measure import WORDS, head, is_wanted, parser, row

CUDA = "CUDAExecutionProvider"
ROUNDS = 3
"""How often each contender has its turn; the median is printed."""


@attrs.define
class Peer:
    """A session of onnxruntime with its input and output in the GPU's memory."""

    session: onnxruntime.InferenceSession
    binding: onnxruntime.IOBinding
    input: onnxruntime.OrtValue
    output: onnxruntime.OrtValue

    @classmethod
    def of(cls, model: bytes, data: np.ndarray, shape: list[int], **options: str) -> "Peer":
        """Make the session and bind its buffers."""
        session = onnxruntime.InferenceSession(model, providers=[(CUDA, {"use_tf32": "0", **options})])
        binding = session.io_binding()
        given = onnxruntime.OrtValue.ortvalue_from_numpy(data, "cuda", 0)
        made = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, data.dtype.type, "cuda", 0)
        binding.bind_ortvalue_input("x", given)
        binding.bind_ortvalue_output(session.get_outputs()[0].name, made)
        return cls(session, binding, given, made)

    def run(self, data: np.ndarray) -> np.ndarray:
        """Copy the input, run, and copy the output."""
        self.input.update_inplace(data)
        self.session.run_with_iobinding(self.binding)
        return self.output.numpy()


async def compare(ml: webnn_py.ML, name: str, make: Callable[[], tuple[bytes, list[int]]]) -> list[float]:
    """Return the median seconds of each contender: CUDA, WebGPU, onnxruntime bound, onnxruntime with a CUDA graph."""
    model, shape = make()
    data_type = np.float16 if "float16" in name else np.float32
    data = np.random.default_rng(1).standard_normal(shape).astype(data_type)
    contexts = [
        await ml.create_context(backend="onnxruntime", execution_provider=CUDA),
        await ml.create_context(backend="wgpu"),
    ]
    ours = [await Built.of_model(context, model, data) for context in contexts]
    (result,) = await ours[0].trip()
    peers = [Peer.of(model, data, list(result.shape), **options) for options in ({}, {"enable_cuda_graph": "1"})]
    for peer in peers:
        check_agreement(result, peer.run(data))
    runs = [*(one.trip for one in ours), *(partial(peer.run, data) for peer in peers)]
    seconds = [[await median_of(run) for run in runs] for _ in range(ROUNDS)]
    for context in contexts:
        context.destroy()
    return [statistics.median(column) for column in zip(*seconds, strict=True)]


async def main_async(words: list[str]) -> None:
    """Print a row for each model."""
    print(head("model", "CUDA provider", "WebGPU", "onnxruntime, bound", "", "onnxruntime, CUDA graph", ""))
    async with webnn_py.open_ml() as ml:
        for name, make in MODELS.items():
            if not is_wanted(name, words):
                continue
            cuda, webgpu, bound, graph = await compare(ml, name, make)
            times = [f"{seconds * 1e3:.2f}" for seconds in (cuda, webgpu, bound, graph)]
            ratios = [f"{cuda / other:.2f} ×" for other in (bound, graph)]
            print(row(name, *times[:3], ratios[0], times[3], ratios[1]), flush=True)


def main() -> None:
    """Measure the models that are asked for."""
    arguments = parser("cuda", __doc__)
    arguments.add_argument("words", **WORDS)
    onnxruntime.set_default_logger_severity(4)
    onnxruntime.preload_dlls()
    trio.run(main_async, arguments.parse_args().words)


if __name__ == "__main__":
    main()
