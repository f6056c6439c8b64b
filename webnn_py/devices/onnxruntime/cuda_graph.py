"""Graphs on the CUDA provider: their runs are captured as CUDA graphs and replayed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from threading import Lock
from time import perf_counter
from typing import Final

import attrs
import numpy as np
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from webnn_py.core.device.backend import Storage
from webnn_py.core.graph import Graph
from webnn_py.core.message_text import device_text
from webnn_py.devices.onnxruntime.cuda_memory import CudaStream
from webnn_py.devices.onnxruntime.engine import EngineOptions
from webnn_py.devices.onnxruntime.executable import NOT_MEASURED, OnnxruntimeGraph
from webnn_py.devices.onnxruntime.session import Binding, BoundSession, Names
from webnn_py.devices.rewriting.report import PassReport, RefusedRule
from webnn_py.devices.shared_constants import SharedConstants
from webnn_py.onnx_export.inlined_export import InlinedModel

RUNS_BEFORE_CAPTURE: Final = 2
"""The runs on the same buffers after which the next one is captured: a capture takes as long as some runs."""

MOST_CAPTURES: Final = 16
"""The most runs of a graph that are captured: onnxruntime keeps each as long as the session."""

ON_GPU: Final = "Cuda"
"""The beginning of onnxruntime's names of a GPU's memory."""

_capturing: Final = Lock()
"""Held while a session is made, or a run captured: while one thread captures, others must not allocate."""


@attrs.define(eq=False)
class _Replay:
    """The runs of a session on the buffers of a binding.

    Attributes:
        version: the version of the binding that the runs are of.
        runs: how many there were.
        options: the options of the next run.
        is_captured: whether the options replay a captured run.
    """

    version: int
    options: onnxruntime.RunOptions
    runs: int = 0
    is_captured: bool = False


class SharedRun:
    """The runs of a session of which the CPU computes a part, on arrays of the host.

    onnxruntime orders its own copies between the two with nothing else, and lets the CPU write to addresses of the GPU
    where a graph has several outputs.

    Args:
        session: the session.
        names: the session's names of the graph's inputs, and of its outputs.
        stream: the stream of the context.
    """

    def __init__(self, session: onnxruntime.InferenceSession, names: tuple[Names, Names], stream: CudaStream) -> None:
        self._session = session
        self._inputs, self._outputs = names
        self._stream = stream
        self._bound: tuple[Mapping[str, Storage], Mapping[str, Storage]] = {}, {}

    def bind(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Note the buffers that the next run reads and writes."""
        self._bound = inputs, outputs

    def run(self, options: onnxruntime.RunOptions) -> None:
        """Copy the inputs to the host, run, and copy the outputs from there."""
        inputs, outputs = self._bound
        self._bound = {}, {}
        given = {self._inputs[name]: self._stream.read(storage.data) for name, storage in inputs.items()}
        made = self._session.run([self._outputs[name] for name in outputs], given, options)
        for storage, array in zip(outputs.values(), made, strict=True):
            self._stream.write(storage.data, np.ascontiguousarray(array))


def _elsewhere(session: onnxruntime.InferenceSession, provider: str) -> list[str]:
    """Return the nodes that another provider computes, and the inputs and outputs that are on the host."""
    nodes = [
        f"{node.op_type} ({node.name})" if node.name else node.op_type
        for part in session.get_provider_graph_assignment_info()
        if part.ep_name != provider
        for node in part.get_nodes()
    ]
    places = {
        "inputs": session.get_input_memory_infos(),
        "outputs": session.get_output_memory_infos(),
    }
    return nodes + [f"with {what} on the host" for what, infos in places.items() if any(map(_is_on_host, infos))]


def _is_on_host(info: onnxruntime.OrtMemoryInfo) -> bool:
    return not info.name.startswith(ON_GPU)


class CudaGraph(OnnxruntimeGraph):
    """A graph that is compiled for the CUDA provider.

    Args:
        graph: the graph to compile.
        options: the options of onnxruntime.
        shared: the constants that graphs of the context share.
        stream: the stream that all sessions of the context compute on.

    Attributes:
        device_seconds: the time that the GPU is expected to take for a run.
        replay_refusal: the reason why runs are not captured; None if they may be.
    """

    replay_refusal: str | None = None
    _shared_run: SharedRun | None = None

    def __init__(self, graph: Graph, options: EngineOptions, shared: SharedConstants, stream: CudaStream) -> None:
        self._stream = stream
        self.device_seconds = NOT_MEASURED
        self._last_device_seconds = NOT_MEASURED
        self._replays: dict[Binding, _Replay] = {}
        self._numbers = count(1)
        with _capturing:
            super().__init__(graph, options, shared)
        if self._shared_run is not None:
            self.bind = self._shared_run.bind
        size = len(graph.nodes)
        self.passes.append(PassReport(("cuda-graph",), size, size, 0.0, is_changed=False))
        if self.replay_refusal is not None:
            self._refuse_replay(self.replay_refusal)

    def _session(self, model: InlinedModel, graph: Graph) -> BoundSession:
        """Make the session that runs a model, with captures where onnxruntime allows them."""
        try:
            made = self._options.session(model, graph.descriptors, enable_cuda_graph="1")
        except Fail as error:
            if "graph capture" not in str(error):
                raise
            made = self._options.session(model, graph.descriptors)
        elsewhere = _elsewhere(made, self._options.provider.name)
        if elsewhere:
            made = self._options.session(model, graph.descriptors)
            self._shared_run = SharedRun(made, (model.inputs, model.outputs), self._stream)
            self.replay_refusal = f"the CPU computes {', '.join(elsewhere)}"
        return BoundSession(made, (model.inputs, model.outputs), model.beside, model.guard)

    def measured(self, seconds: float) -> None:
        """Note how long the GPU took for a run."""
        self.device_seconds = min(seconds, self._last_device_seconds)
        self._last_device_seconds = seconds

    def run(self) -> bool:
        """Submit the kernels, or replay a captured run of them; return False: there are no guards."""
        if self._shared_run is not None:
            began = perf_counter()
            self._shared_run.run(self._run_options)
            self.expected_seconds = perf_counter() - began
            return False
        binding = self._quick.bound
        replay = self._replays.get(binding)
        if replay is None or replay.version != binding.version:
            replay = self._replays[binding] = _Replay(binding.version, self._options_of_run(-1))
        if replay.is_captured or replay.runs < RUNS_BEFORE_CAPTURE or self.replay_refusal is not None:
            replay.runs += 1
            self._run_options = replay.options
            return super().run()
        return self._capture(replay)

    def _capture(self, replay: _Replay) -> bool:
        """Run and capture, unless another thread uses CUDA in a way that captures forbid.

        Some kernels refuse to be captured. What the run has submitted until then is incomplete, so it is run again.
        """
        number = next(self._numbers)
        if number > MOST_CAPTURES:
            self._refuse_replay(f"{MOST_CAPTURES} runs on other buffers are captured already")
        self._run_options = replay.options
        if self.replay_refusal is not None or not _capturing.acquire(blocking=False):
            return super().run()
        try:
            self._run_options = self._options_of_run(number)
            doubtful = super().run()
        except Exception as error:
            if self._run_options.terminate:
                raise
            self._stream.end_capture()
            self._refuse_replay(f"onnxruntime cannot capture it: {device_text(error)}")
            self._run_options = replay.options
            return super().run()
        finally:
            _capturing.release()
        replay.options, replay.is_captured = self._run_options, True
        return doubtful

    def _refuse_replay(self, why: str) -> None:
        """Note why runs are not captured, in the report of passes as well."""
        self.replay_refusal = why
        self.passes[-1] = attrs.evolve(self.passes[-1], refused=(RefusedRule("cuda-graph", "a run", why),))

    def _options_of_run(self, number: int) -> onnxruntime.RunOptions:
        """Return the options of runs that are captured under a number; -1 for none."""
        options = onnxruntime.RunOptions()
        options.log_severity_level = 4
        options.add_run_config_entry("gpu_graph_id", str(number))
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")
        return options

    def release(self) -> None:
        """Release buffers, constants and sessions."""
        self._replays.clear()
        self._shared_run = None
        super().release()
