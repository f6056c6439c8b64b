"""Whole models on an NVIDIA GPU, host to host: on CUDA's provider, on WebGPU, and by onnxruntime alone.

``python -m spec_tests.labs.benchmarks.cuda [WORD …]`` measures the models of ``gpu_models`` that have a word in their
names; with ``--listed``, those of ``spec_tests/labs/real_models/models.toml`` that have one in their file or package.
onnxruntime's own sessions have bound device memory and no TF32, without and with a CUDA graph.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import attrs
import numpy as np
import onnxruntime
import trio

import webnn_py
from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.engine_listed_models import chosen, fed, parser_of_listed
from spec_tests.labs.benchmarks.gpu_models import MODELS, check_agreement, median_of
from spec_tests.labs.benchmarks.measure import head, is_wanted, row
from spec_tests.labs.real_models.comparison import drawn, feeds_of, results_of, session_of
from webnn_py.onnx_models import OnnxModel

CUDA = "CUDAExecutionProvider"
ROUNDS = 3
"""How often each contender has its turn; the median is printed."""

Drawing = tuple[webnn_py.MLGraphBuilder, Mapping[str, webnn_py.MLOperand]]


@attrs.frozen
class Subject:
    """A model that is measured.

    Attributes:
        model: its bytes, or its path.
        feeds: what onnxruntime's inputs are given.
        results: what onnxruntime computes of them on the CPU, by the names of the outputs.
        draw: converts it for a context.
    """

    model: bytes | str
    feeds: Mapping[str, np.ndarray]
    results: Mapping[str, np.ndarray]
    draw: Callable[[webnn_py.MLContext], Drawing]

    @classmethod
    def of(
        cls, model: bytes | str, feeds: Mapping[str, np.ndarray], draw: Callable[[webnn_py.MLContext], Drawing]
    ) -> "Subject":
        """Compute the results."""
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        return cls(model, feeds, results_of(session, feeds), draw)


@attrs.define
class Peer:
    """A session of onnxruntime with its inputs and outputs in the GPU's memory."""

    session: onnxruntime.InferenceSession
    binding: onnxruntime.IOBinding
    inputs: Mapping[str, onnxruntime.OrtValue]
    outputs: Mapping[str, onnxruntime.OrtValue]

    @classmethod
    def of(cls, subject: Subject, **options: str) -> "Peer":
        """Make the session and bind its buffers."""
        session = onnxruntime.InferenceSession(subject.model, providers=[(CUDA, {"use_tf32": "0", **options})])
        binding = session.io_binding()
        inputs = {
            item.name: onnxruntime.OrtValue.ortvalue_from_numpy(subject.feeds[item.name], "cuda", 0)
            for item in session.get_inputs()
        }
        outputs = {
            name: onnxruntime.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype.type, "cuda", 0)
            for name, array in subject.results.items()
        }
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in outputs.items():
            binding.bind_ortvalue_output(name, value)
        return cls(session, binding, inputs, outputs)

    def run(self, data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Copy the inputs, run, and copy the outputs."""
        for name, value in self.inputs.items():
            value.update_inplace(data[name])
        self.session.run_with_iobinding(self.binding)
        return {name: value.numpy() for name, value in self.outputs.items()}


def made(make: Callable[[], tuple[bytes, list[int]]], name: str) -> Subject:
    """Return a model of ``gpu_models``, whose input is called x."""
    model, shape = make()
    data_type = np.float16 if "float16" in name else np.float32
    data = np.random.default_rng(1).standard_normal(shape).astype(data_type)

    def draw(context: webnn_py.MLContext) -> Drawing:
        builder = webnn_py.MLGraphBuilder(context)
        return builder, OnnxModel.load(model).convert(builder, {"x": shape})

    return Subject.of(model, {"x": data}, draw)


def subjects(options: argparse.Namespace) -> Iterator[tuple[str, Subject]]:
    """Yield the models that are asked for, with their names."""
    if not options.listed:
        yield from ((name, made(make, name)) for name, make in MODELS.items() if is_wanted(name, options.words))
        return
    for name, model, path in chosen(options):
        feeds, known = feeds_of(model, session_of(str(path)))
        yield name, Subject.of(str(path), feeds, partial(drawn, model=model, path=path, feeds=feeds, known=known))


def peer_of(subject: Subject, **options: str) -> Peer | None:
    """Return onnxruntime's own session; None where it cannot run the model so."""
    try:
        peer = Peer.of(subject, **options)
        results = peer.run(subject.feeds)
    except Exception as error:  # noqa: BLE001 - onnxruntime's, of a model with nodes on the CPU
        print(f"onnxruntime with {options or 'bound memory'}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        return None
    check(results, subject.results)
    return peer


def check(results: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
    """Raise where results are not those of the same model."""
    for name, array in results.items():
        check_agreement(array, wanted[name])


async def compare(ml: webnn_py.ML, subject: Subject) -> list[float | None]:
    """Return the median seconds of each contender: CUDA, WebGPU, onnxruntime bound, onnxruntime with a CUDA graph."""
    contexts = [
        await ml.create_context(backend="onnxruntime", execution_provider=CUDA),
        await ml.create_context(backend="wgpu"),
    ]
    ours = []
    for context in contexts:
        builder, outputs = subject.draw(context)
        feeds, _ = fed(subject.feeds, outputs)
        ours.append(await Built.of(context, builder, outputs, feeds))
        check(dict(zip(ours[-1].outputs, await ours[-1].trip(), strict=True)), subject.results)
    peers = [peer_of(subject, **options) for options in ({}, {"enable_cuda_graph": "1"})]
    theirs = [None if peer is None else partial(peer.run, subject.feeds) for peer in peers]
    runs = [*(one.trip for one in ours), *theirs]
    seconds = [[None if run is None else await median_of(run) for run in runs] for _ in range(ROUNDS)]
    for context in contexts:
        context.destroy()
    return [None if None in column else statistics.median(column) for column in zip(*seconds, strict=True)]


def cells(ours: float, *others: float | None) -> list[str]:
    """Return the cells of a row: the times in milliseconds, and how many times as long as onnxruntime CUDA took."""
    times = ["none" if value is None else f"{value * 1e3:.2f}" for value in (ours, *others)]
    ratios = ["" if value is None else f"{ours / value:.2f} ×" for value in others]
    return [*times[:3], ratios[1], times[3], ratios[2]]


async def main_async(options: argparse.Namespace) -> None:
    """Print a row for each model."""
    print(head("model", "CUDA provider", "WebGPU", "onnxruntime, bound", "", "onnxruntime, CUDA graph", ""))
    async with webnn_py.open_ml() as ml:
        for name, subject in subjects(options):
            print(row(name, *cells(*await compare(ml, subject))), flush=True)


def main() -> None:
    """Measure the models that are asked for."""
    arguments = parser_of_listed("cuda", __doc__, ["onnxruntime"])
    arguments.add_argument("--listed", action="store_true", help="real models that packages have")
    onnxruntime.set_default_logger_severity(4)
    onnxruntime.preload_dlls()
    trio.run(main_async, arguments.parse_args())


if __name__ == "__main__":
    main()
