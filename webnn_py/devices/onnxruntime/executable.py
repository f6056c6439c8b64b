"""The compilation of a graph into a session of onnxruntime, and its runs.

:data:`PASSES` rewrite the graph. :class:`GuardedRules` write its operators fast and with guards, and ``rules.write``
writes them exactly for all inputs. From either, :class:`InlinedExport` makes a model, :class:`EngineOptions` a session,
and :class:`BoundSession` binds buffers. The exact session is made when a guard of the fast one is triggered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np
import onnxruntime

from webnn_py.core.device.backend import HostArray, Memory, Storage
from webnn_py.core.graph import Constant, Graph, Value
from webnn_py.devices.in_place import updates_of
from webnn_py.devices.onnxruntime.engine import EngineOptions
from webnn_py.devices.onnxruntime.lowering.guarded_rules import GuardedRules
from webnn_py.devices.onnxruntime.passes.pipeline import NODE_PASSES, PASSES
from webnn_py.devices.onnxruntime.session import BoundSession
from webnn_py.devices.rewriting.passes import PassContext, ReadConstant
from webnn_py.devices.rewriting.reshapes import acts_as_reshape
from webnn_py.devices.shared_constants import SharedConstants
from webnn_py.devices.worker_thread import SHORT_SECONDS, computing_time
from webnn_py.onnx_export.body import Write
from webnn_py.onnx_export.inlined_export import InlinedExport, InlinedModel
from webnn_py.onnx_export.rules.pooling import LONG_WINDOW

SECONDS_PER_NODE: Final = 1.5e-4
"""The approximate time to compile one node, more than half of it spent in onnxruntime."""

SECONDS_PER_CONSTANT_BYTE: Final = 1e-9
"""The approximate time to lay out a byte of a constant."""

SECONDS_PER_FILTER_BYTE: Final = 6e-8
"""The longest time to lay out a byte of a filter: a single channel is repeated to fill a block."""

SECONDS_PER_PLACE: Final = 1e-3
"""The longest time for a row or a column of pools that are composed of other operators: several nodes."""

FILTERING: Final = frozenset({"conv2d", "conv_transpose2d"})

NOT_MEASURED: Final = 1.0
"""The seconds that a dispatch is expected to take until one has been measured: the first one is always slow."""

BRIEF_SECONDS: Final = 1e-3
"""The same for a graph of at most ``MOST_STEPS``: waking up a thread would take longer."""

MOST_STEPS: Final = 4_000_000
"""The steps, as :func:`_first_seconds` counts them, that take no more than a millisecond or two."""

STEPS_PER_NODE: Final = 100_000
"""The steps of a node that does nothing: its first run finds cold caches."""


class OnnxruntimeGraph:
    """A compiled graph; run by one thread at a time.

    Args:
        graph: the graph to compile.
        options: the options of onnxruntime.
        shared: the constants that graphs of the context share.

    Attributes:
        byte_length: the bytes of the constants that are not shared. onnxruntime does not report the memory of the
            constants that it makes itself, nor of intermediates.
        shared: the memory of the constants that other graphs may use as well.
        passes: a report of each pass over the graph.
        in_place: the outputs that may be in the memory of an input, by name: that input.
        bind: binds the buffers that the next run reads and writes.
        expected_seconds: the shorter of the last two runs: one of them may have waited for memory.
    """

    def __init__(self, graph: Graph, options: EngineOptions, shared: SharedConstants) -> None:
        constants = _Constants(shared)
        self._options = options
        provider = options.provider
        self.expected_seconds = _first_seconds(graph)
        self.in_place = updates_of(graph) if provider.writes_in_place else {}
        graph, passes = PASSES.run(
            graph, PassContext(constants.peek, provider.name, keeps_subnormals=options.keep_subnormals)
        )
        write = provider.write
        self._may_fail = False
        if provider.has_guards:
            write = guarded = GuardedRules(graph, constants.peek, checks_indices=provider.checks_indices)
        model = self._model(graph, constants.contents, write)
        self.passes = [*passes, *model.passes]
        self._quick = self._session(model, graph)
        if provider.has_guards:
            self._may_fail = guarded.may_fail
        self._exactly: Callable[[], BoundSession] | None = None
        if self._quick.guard is not None or self._may_fail:
            exact = partial(self._model, graph, constants.used.__getitem__, provider.write)
            self._exactly = lambda: self._session(exact(), graph)
        self.bind = self._quick.bind
        self._exact: BoundSession | None = None
        self.byte_length = constants.byte_length
        self.shared = tuple(constants.shared.values())
        shared.enter(constants.shared)
        self._run_options = onnxruntime.RunOptions()
        self._run_options.log_severity_level = 4
        # No graph is captured. Without the entry, onnxruntime raises and catches an internal error at each run.
        self._run_options.add_run_config_entry("gpu_graph_id", "-1")
        self._last_seconds = math.inf
        # While another device computes, the call takes time, but no processor time.
        self._clock = computing_time if provider.device_type == "cpu" else perf_counter

    def _model(self, graph: Graph, contents: ReadConstant, write: Write) -> InlinedModel:
        """Write a rewritten graph as a model."""
        context = PassContext(contents, self._options.provider.name)
        return InlinedExport(graph, context, write, NODE_PASSES, self._options.provider.float16).model()

    def _session(self, model: InlinedModel, graph: Graph) -> BoundSession:
        """Make the session that runs a model."""
        session = self._options.session(model, graph.descriptors)
        return BoundSession(session, (model.inputs, model.outputs), model.beside, model.guard)

    @staticmethod
    def compile_seconds(graph: Graph) -> float:
        """Estimate the compile time, to choose inline or thread; infinite if onnxruntime folds nodes into constants."""
        constants: set[Value] = set()
        filter_bytes = places = 0
        for node in graph.nodes:
            name = node.operator.name
            if name in FILTERING:
                filter_bytes += node.operand("filter").byte_length
            elif node.operator.category == "pooling" and max(node.options["window_dimensions"] or (1,)) > LONG_WINDOW:
                places += sum(node.operand("input").shape) + sum(node.outputs[0].shape)
            is_constant = True
            for value in node.inputs:
                if isinstance(value, Constant):
                    constants.add(value)
                else:
                    is_constant = False
            if is_constant and not acts_as_reshape(node):
                return math.inf
        constant_bytes = sum([value.descriptor.byte_length for value in constants])
        seconds = len(graph.nodes) * SECONDS_PER_NODE + constant_bytes * SECONDS_PER_CONSTANT_BYTE
        return seconds + filter_bytes * SECONDS_PER_FILTER_BYTE + places * SECONDS_PER_PLACE

    def run(self) -> bool:
        """Run the fast session; return whether its outputs may be wrong, so that :meth:`run_exactly` is needed."""
        session = self._quick
        is_short = self.expected_seconds < SHORT_SECONDS
        clock = perf_counter if is_short else self._clock
        if self._options.provider.copies_inputs:
            session.bound.bind_inputs_again()
        started = clock()
        try:
            session.compute(session.bound.native, self._run_options)
        except Exception:
            if not self._may_fail or self._run_options.terminate:
                raise
            return True  # an index may be out of range; other failures occur again in the exact session
        seconds = clock() - started
        if is_short:
            seconds = min(seconds, SHORT_SECONDS)  # so that a later run is measured by the more exact clock
        self.expected_seconds = min(seconds, self._last_seconds)
        self._last_seconds = seconds
        return session.guard is not None and session.is_doubtful()

    def run_exactly(self) -> None:
        """Run the exact session on the same buffers."""
        assert self._exactly is not None  # noqa: S101 - only graphs with guards need it
        if self._exact is None:
            self._exact = self._exactly()
        self._exact.bind_as(self._quick)
        if self._options.provider.copies_inputs:
            self._exact.bound.bind_inputs_again()
        self._exact.run(self._run_options)

    def run_checked(self) -> None:
        """Run the fast session, and the exact one if needed."""
        if self.run():
            self.run_exactly()

    def stop(self) -> None:
        """End a current run before its next node."""
        self._run_options.terminate = True

    def release(self) -> None:
        """Release buffers, constants and sessions."""
        for session in (self._quick, self._exact):
            if session is not None:
                session.unbind()
        del self._quick, self.bind
        self._exact = self._exactly = None
        self.shared = ()


def _first_seconds(graph: Graph) -> float:
    """Return the seconds that the first dispatch of a graph is expected to take.

    A product of matrices takes no more steps than it has elements for each element of an operand. No other operator
    takes more than the square of all elements that it reads and writes: none multiplies each element of more than two
    operands with each of the other.
    """
    steps = 0
    for node in graph.nodes:
        read = [value.descriptor.element_count for value in node.inputs]
        made = sum([descriptor.element_count for descriptor in node.outputs])
        steps += STEPS_PER_NODE
        steps += made * max(read) if node.operator.category == "matrix" else (sum(read) + made) ** 2
        if steps > MOST_STEPS:
            return NOT_MEASURED
    return BRIEF_SECONDS


class _Constants:
    """The arrays of a graph's constants; those with a sharing key are reused from graphs that have them already.

    Attributes:
        byte_length: the bytes of the constants that are not shared.
        shared: the memory of the shared constants.
        used: the arrays of all constants whose contents were read.
    """

    def __init__(self, there: SharedConstants) -> None:
        self._there = there
        self.used: dict[Constant, HostArray] = {}
        self._read: dict[Storage, HostArray] = {}
        self.byte_length = 0
        self.shared: dict[Hashable, Memory] = {}

    def peek(self, constant: Constant) -> HostArray:
        """Return the array of a constant."""
        data = constant.data
        if isinstance(data, Storage):
            if data not in self._read:
                self._read[data] = data.data.array  # which may be a copy from a device
            return self._read[data]
        if not isinstance(data, np.ndarray):
            raise TypeError(f"a constant of {type(data).__name__}")
        return data

    def contents(self, constant: Constant) -> HostArray:
        """Return the array of a constant, and record it as used."""
        array = self.used.get(constant)
        if array is None:
            array = self.used[constant] = self._noted(constant, self.peek(constant))
        return array

    def _noted(self, constant: Constant, data: HostArray) -> HostArray:
        if isinstance(constant.data, Storage):
            return data  # the buffer's owner counts it
        if constant.key is None:
            self.byte_length += data.nbytes
            return data
        identity = constant.key, constant.descriptor
        if identity not in self.shared:
            self.shared[identity] = self._there.find(identity) or Memory(data, data.nbytes)
        array: HostArray = self.shared[identity].data
        return array
