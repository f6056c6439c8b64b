"""A graph compiled for onnxruntime: one session, with the buffers of a dispatch bound to its inputs and outputs."""

from collections.abc import Mapping
from time import perf_counter

import numpy as np
import onnxruntime

from webnn_py.device.backend import HostArray, Storage
from webnn_py.device.on_onnxruntime.engine import EngineOptions
from webnn_py.device.on_onnxruntime.rules import write
from webnn_py.graph import Constant, Graph
from webnn_py.onnx_export.model_export import ModelExport

NOT_MEASURED = 1.0
"""Seconds that a dispatch is expected to take until one has been measured: the first is always slow."""


class HostBuffer:
    """The memory of a buffer: an array, and the same for onnxruntime.

    Attributes:
        array: the contents.
        value: onnxruntime's tensor over the same bytes.
        bound_to: the graphs that it is bound to, which must forget it when it is freed.
    """

    __slots__ = ("array", "bound_to", "value")

    def __init__(self, array: HostArray) -> None:
        self.array = array
        self.value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self.bound_to: set[OnnxruntimeGraph] = set()


class OnnxruntimeGraph:
    """A compiled graph; run by one thread at a time.

    Args:
        graph: what to compile.
        options: how to run it.
    """

    def __init__(self, graph: Graph, options: EngineOptions) -> None:
        self._inputs = {name: f"i{number}" for number, name in enumerate(graph.inputs)}
        self._outputs = {name: f"o{number}" for number, name in enumerate(graph.outputs)}
        # The script's names may be one for an input and an output, which ONNX does not have.
        named = Graph(
            {self._inputs[name]: value for name, value in graph.inputs.items()},
            {self._outputs[name]: value for name, value in graph.outputs.items()},
            graph.nodes,
        )
        export = ModelExport(named, _contents, write, is_inlined=True)
        model = export.model()
        self._constants = export.beside
        self.byte_length = sum(array.nbytes for array in self._constants.values())
        session = options.session(model, self._constants)
        self._session = session
        self._binding = session.io_binding()
        self._bound: dict[str, HostBuffer] = {}
        self._run_options = onnxruntime.RunOptions()
        self._run_options.log_severity_level = 4
        self._run_options.add_run_config_entry("gpu_graph_id", "-1")
        self.expected_seconds = NOT_MEASURED

    def bind(self, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Let the next run read and write these buffers."""
        for name, storage in inputs.items():
            if self._takes(self._inputs[name], storage.data):
                self._binding.bind_ortvalue_input(self._inputs[name], storage.data.value)
        for name, storage in outputs.items():
            if self._takes(self._outputs[name], storage.data):
                self._binding.bind_ortvalue_output(self._outputs[name], storage.data.value)

    def _takes(self, name: str, buffer: HostBuffer) -> bool:
        """Whether a buffer is not the one that is bound already; if so, note that it will be."""
        if self._bound.get(name) is buffer:
            return False
        self._bound[name] = buffer
        buffer.bound_to.add(self)
        return True

    def run(self) -> None:
        """Compute what is bound from what is bound."""
        started = perf_counter()
        self._session.run_with_iobinding(self._binding, self._run_options)
        self.expected_seconds = perf_counter() - started

    def stop(self) -> None:
        """End a run that is going on before its next node."""
        self._run_options.terminate = True

    def unbind(self) -> None:
        """Let go of all buffers."""
        self._binding.clear_binding_inputs()
        self._binding.clear_binding_outputs()
        for buffer in self._bound.values():
            buffer.bound_to.discard(self)
        self._bound.clear()

    def release(self) -> None:
        """Let go of buffers, constants and the session."""
        self.unbind()
        self._constants = {}
        del self._binding, self._session


def _contents(constant: Constant) -> HostArray:
    """The bytes of a constant buffer."""
    data = constant.data
    array = data.data.array if isinstance(data, Storage) else data
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a constant of {type(array).__name__}")
    return array
