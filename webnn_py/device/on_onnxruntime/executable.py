"""A graph compiled for onnxruntime: one session, with the buffers of a dispatch bound to its inputs and outputs."""

from collections.abc import Mapping
from time import perf_counter

import numpy as np
import onnxruntime

from webnn_py.device.backend import HostArray, Memory, Storage
from webnn_py.device.on_onnxruntime.engine import EngineOptions
from webnn_py.device.on_onnxruntime.rules import write
from webnn_py.device.shared_constants import Identities, Identity, SharedConstants
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

    def unbind(self) -> None:
        """Have every graph let go of it."""
        for graph in list(self.bound_to):
            graph.unbind()


class OnnxruntimeGraph:
    """A compiled graph; run by one thread at a time.

    Args:
        graph: what to compile.
        options: how to run it.
        shared: the constants that graphs of the context have in common.

    Attributes:
        byte_length: that of the constants that are its own. What onnxruntime makes of constants, and where it keeps
            intermediates, it does not tell.
        shared: the memory of the constants that other graphs may use as well.
    """

    def __init__(self, graph: Graph, options: EngineOptions, shared: SharedConstants) -> None:
        self._inputs = {name: f"i{number}" for number, name in enumerate(graph.inputs)}
        self._outputs = {name: f"o{number}" for number, name in enumerate(graph.outputs)}
        # The script's names may be one for an input and an output, which ONNX does not have.
        named = Graph(
            {self._inputs[name]: value for name, value in graph.inputs.items()},
            {self._outputs[name]: value for name, value in graph.outputs.items()},
            graph.nodes,
        )
        constants = _Constants(graph, shared)
        export = ModelExport(named, constants.contents, write, is_inlined=True)
        model = export.model()
        self._constants = export.beside
        self.byte_length = constants.byte_length
        self.shared = tuple(constants.shared.values())
        self._session = options.session(model, self._constants, _largest(graph))
        self._binding = self._session.io_binding()
        shared.enter(constants.shared)
        self._bound: dict[str, HostBuffer] = {}
        self._run_options = onnxruntime.RunOptions()
        self._run_options.log_severity_level = 4
        # None is captured. Without the entry, onnxruntime raises and catches an error of its own at each run.
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
        before = self._bound.get(name)
        if before is buffer:
            return False
        self._bound[name] = buffer
        if before is not None and before not in self._bound.values():
            before.bound_to.discard(self)
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
        del self._binding, self._session
        self._constants = {}
        self.shared = ()


def _largest(graph: Graph) -> int:
    """The elements of the largest value."""
    values = {value for node in graph.nodes for value in (*node.inputs, *node.results)}
    return max((value.descriptor.element_count for value in values), default=0)


class _Constants:
    """The arrays of a graph's constants, of which those with a key are the ones that another graph has already.

    Attributes:
        byte_length: of those that are the graph's own.
        shared: the others.
    """

    def __init__(self, graph: Graph, there: SharedConstants) -> None:
        self._identities = Identities(graph, ())
        self._there = there
        self._own: set[Constant] = set()
        self.byte_length = 0
        self.shared: dict[Identity, Memory] = {}

    def contents(self, constant: Constant) -> HostArray:
        """The array of a constant, which is noted as used."""
        data = constant.data
        if isinstance(data, Storage):
            held: HostArray = data.data.array  # counted where it is held
            return held
        if not isinstance(data, np.ndarray):
            raise TypeError(f"a constant of {type(data).__name__}")
        identity = self._identities.of(constant)
        if identity is None:
            self.byte_length += data.nbytes if constant not in self._own else 0
            self._own.add(constant)
            return data
        if identity not in self.shared:
            self.shared[identity] = self._there.find(identity) or Memory(data, data.nbytes)
        array: HostArray = self.shared[identity].data
        return array
