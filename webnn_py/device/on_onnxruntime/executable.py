"""A graph compiled for onnxruntime: a session, and another for numbers that the first may get wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np
import onnxruntime

from webnn_py.device.backend import HostArray, Memory, Storage
from webnn_py.device.on_onnxruntime.engine import TESTED_PROVIDER, EngineOptions
from webnn_py.device.on_onnxruntime.lowering import rules
from webnn_py.device.on_onnxruntime.lowering.guarded_rules import GuardedRules
from webnn_py.device.on_onnxruntime.passes.pipeline import NODE_PASSES, PASSES
from webnn_py.device.on_onnxruntime.session import BoundSession
from webnn_py.device.own_thread import SHORT_SECONDS, computing_time
from webnn_py.device.reshapes import is_reshape
from webnn_py.device.shared_constants import SharedConstants
from webnn_py.graph import Constant, Graph, Value
from webnn_py.onnx_export.body import Write
from webnn_py.onnx_export.inlined_export import InlinedExport, InlinedModel
from webnn_py.onnx_export.model_export import ReadConstant
from webnn_py.onnx_export.rules.pooling import LONG_WINDOW
from webnn_py.rewriting.passes import PassContext

SECONDS_PER_NODE: Final = 1.5e-4
"""About what compiling one node takes, more than half of it by onnxruntime."""

SECONDS_PER_CONSTANT_BYTE: Final = 1e-9
"""About what laying out a byte of a constant takes."""

SECONDS_PER_FILTER_BYTE: Final = 6e-8
"""The most that laying out a byte of a filter takes: of a single channel, it is repeated for a block of them."""

SECONDS_PER_PLACE: Final = 1e-3
"""The most that a row or a column of pools takes that are composed of other operators: several nodes."""

FILTERING: Final = frozenset({"conv2d", "conv_transpose2d"})

NOT_MEASURED: Final = 1.0
"""Seconds that a dispatch is expected to take until one has been measured: the first is always slow."""


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
        passes: what each pass did to the graph.
        bind: lets the next run read and write these buffers.
        expected_seconds: the shorter of the last two runs: one of them may have waited for memory.
    """

    def __init__(self, graph: Graph, options: EngineOptions, shared: SharedConstants) -> None:
        constants = _Constants(shared)
        self._options = options
        graph, self.passes = PASSES.run(graph, PassContext(constants.peek, options.provider))
        guarded = GuardedRules(graph, constants.peek, checks_indices=options.provider == TESTED_PROVIDER)
        model = self._model(graph, constants.contents, guarded)
        self.passes += model.passes
        self._quick = self._session(model, graph)
        self.bind = self._quick.bind
        self._exactly: Callable[[], BoundSession] | None = None
        self._may_fail = guarded.may_fail
        if self._quick.guard is not None or self._may_fail:
            exact = partial(self._model, graph, constants.used.__getitem__, rules.write)
            self._exactly = lambda: self._session(exact(), graph)
        self._exact: BoundSession | None = None
        self.byte_length = constants.byte_length
        self.shared = tuple(constants.shared.values())
        shared.enter(constants.shared)
        self._run_options = onnxruntime.RunOptions()
        self._run_options.log_severity_level = 4
        # None is captured. Without the entry, onnxruntime raises and catches an error of its own at each run.
        self._run_options.add_run_config_entry("gpu_graph_id", "-1")
        self.expected_seconds = NOT_MEASURED
        self._last_seconds = math.inf
        # While another device computes, the processor has nothing to do, but the call takes its time.
        self._clock = computing_time if options.provider == TESTED_PROVIDER else perf_counter

    @staticmethod
    def compile_seconds(graph: Graph) -> float:
        """About how long compiling takes, for choosing inline or thread; infinite if nodes are computed by then."""
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
            if is_constant and not is_reshape(node):
                return math.inf
        constant_bytes = sum([value.descriptor.byte_length for value in constants])
        seconds = len(graph.nodes) * SECONDS_PER_NODE + constant_bytes * SECONDS_PER_CONSTANT_BYTE
        return seconds + filter_bytes * SECONDS_PER_FILTER_BYTE + places * SECONDS_PER_PLACE

    def _model(self, graph: Graph, contents: ReadConstant, write: Write) -> InlinedModel:
        context = PassContext(contents, self._options.provider)
        return InlinedExport(graph, context, write, NODE_PASSES, rules.WITHOUT_FLOAT16).model()

    def _session(self, model: InlinedModel, graph: Graph) -> BoundSession:
        session = self._options.session(model, graph.descriptors)
        return BoundSession(session, (model.inputs, model.outputs), model.beside, model.guard)

    def run(self) -> bool:
        """Compute what is bound from what is bound; whether that may be wrong: then :meth:`run_exactly` is needed."""
        session = self._quick
        is_short = self.expected_seconds < SHORT_SECONDS
        clock = perf_counter if is_short else self._clock
        started = clock()
        try:
            session.compute(session.bound.native, self._run_options)
        except Exception:
            if not self._may_fail or self._run_options.terminate:
                raise
            return True  # an index is out of range; what else fails, fails again
        seconds = clock() - started
        if is_short:
            seconds = min(seconds, SHORT_SECONDS)  # at least so long: the next but one is measured well
        self.expected_seconds = min(seconds, self._last_seconds)
        self._last_seconds = seconds
        return session.guard is not None and session.is_doubtful()

    def run_exactly(self) -> None:
        """Compute the same, by the rules that hold for all numbers."""
        assert self._exactly is not None  # noqa: S101 - only what has guards is not done
        if self._exact is None:
            self._exact = self._exactly()
        self._exact.bind_as(self._quick)
        self._exact.run(self._run_options)

    def run_wholly(self) -> None:
        """Both, if need be."""
        if self.run():
            self.run_exactly()

    def stop(self) -> None:
        """End a run that is going on before its next node."""
        self._run_options.terminate = True

    def release(self) -> None:
        """Let go of buffers, constants and the session."""
        for session in (self._quick, self._exact):
            if session is not None:
                session.unbind()
        del self._quick, self.bind
        self._exact = self._exactly = None
        self.shared = ()


class _Constants:
    """The arrays of a graph's constants, of which those with a key are the ones that another graph has already.

    Attributes:
        byte_length: of those that are the graph's own.
        shared: the others.
        used: the arrays of all whose contents were asked for.
    """

    def __init__(self, there: SharedConstants) -> None:
        self._there = there
        self.used: dict[Constant, HostArray] = {}
        self.byte_length = 0
        self.shared: dict[Hashable, Memory] = {}

    @staticmethod
    def peek(constant: Constant) -> HostArray:
        """The array of a constant."""
        data = constant.data
        if isinstance(data, Storage):
            held: HostArray = data.data.array
            return held
        if not isinstance(data, np.ndarray):
            raise TypeError(f"a constant of {type(data).__name__}")
        return data

    def contents(self, constant: Constant) -> HostArray:
        """The array of a constant, which is noted as used."""
        array = self.used.get(constant)
        if array is None:
            array = self.used[constant] = self._noted(constant, self.peek(constant))
        return array

    def _noted(self, constant: Constant, data: HostArray) -> HostArray:
        if isinstance(constant.data, Storage):
            return data  # counted where it is held
        if constant.key is None:
            self.byte_length += data.nbytes
            return data
        identity = constant.key, constant.descriptor
        if identity not in self.shared:
            self.shared[identity] = self._there.find(identity) or Memory(data, data.nbytes)
        array: HostArray = self.shared[identity].data
        return array
