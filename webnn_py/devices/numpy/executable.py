"""A graph compiled for numpy: a flat list of calls on numbered slots.

``build()`` decides everything once: order, constants, views, the places of intermediates in one arena, and one callable
per node, whose intermediates are in scratch that all share. A dispatch puts the buffers' arrays into their slots, makes
the views that depend on them, and makes all calls in order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from time import perf_counter
from typing import Final

import attrs
import numpy as np

from webnn_py.core.device.backend import HostArray, KernelTiming, Memory, Storage
from webnn_py.core.graph import Constant, Graph, Node, Output, Value
from webnn_py.devices.arena import lay_out, lifetimes, split_constant
from webnn_py.devices.compiled_plan import CompiledPlan
from webnn_py.devices.numpy.scratch import ScratchPool
from webnn_py.devices.numpy.table import (
    Array,
    DispatchError,
    Kernel,
    Run,
    View,
    constant_array,
    entry_of,
    prepared,
    run_node,
)
from webnn_py.devices.numpy.views import find_views
from webnn_py.devices.rewriting.report import PassReport
from webnn_py.devices.shared_constants import Identities, Identity, SharedConstants
from webnn_py.devices.worker_thread import SHORT_SECONDS, computing_time

SECONDS_PER_OPERATION = 1e-9
"""An estimate of the time of one elementary operation, until a dispatch has been measured."""

SECONDS_PER_NODE = 2e-5
"""The approximate time to compile one node."""

SECONDS_PER_PLACE = 2e-6
"""The approximate time to locate the windows of a convolution, for each row and each column of them."""


@attrs.frozen
class Call:
    """One call: ``kernel(*pick(slots))``, which computes ``node``; None where it copies an output.

    Where the arrays are the same at each dispatch, ``run`` is the call with its arrays bound.
    """

    kernel: Kernel
    pick: Callable[[list[Array | None]], tuple[Array, ...]]
    node: Node | None
    run: Run | None = None

    def prepared(self, template: list[Array | None]) -> "Call":
        """Return the call with ``run``, if its arrays are known before a dispatch."""
        arrays = self.pick(template)
        is_known = all(array is not None for array in arrays)
        return attrs.evolve(self, run=prepared(self.kernel, *arrays) if is_known else None)


@attrs.frozen
class LateView:
    """A view that is made at each dispatch, because its base array comes with the dispatch."""

    slot: int
    base: int
    view: View


NOTHING: Final[Mapping[str, str]] = {}


class NumpyGraph:
    """A compiled graph; run by one thread at a time.

    Args:
        graph: the graph to compile.
        constants: the constants that graphs of the context share; None for a separate graph.
        passes: a report of each pass over the graph.
        in_place: the outputs that may be in the memory of an input, by name: that input.

    Attributes:
        passes: the reports of the passes.
        expected_seconds: the duration of the last run; an estimate before the first one.
        is_measured: whether it has run.
    """

    def __init__(
        self,
        graph: Graph,
        constants: SharedConstants | None = None,
        passes: Sequence[PassReport] = (),
        in_place: Mapping[str, str] = NOTHING,
    ) -> None:
        self.passes = passes
        self.in_place = in_place
        self.byte_length = 0
        self._intermediate_bytes = 0
        self._shared: dict[Identity, Memory] = {}
        self.stopped = False
        self._slots: dict[Value, int] = {}
        self._template: list[Array | None] = []
        self._late_views: list[LateView] = []
        self._calls: list[Call] = []
        self._output_copies: list[tuple[int, ...]] = []
        self._timed: list[Call] = []
        self._timings: list[KernelTiming] = []
        folded, live = split_constant(graph)
        self._input_slots = {name: self._new_slot(value, None) for name, value in graph.inputs.items()}
        self._output_slots: dict[str, int] = {}
        views = find_views(live)
        shared = SharedConstants() if constants is None else constants
        constant = self._fold(graph, folded, live, shared)
        written = self._place_outputs(graph, constant, views)
        work = {node: entry_of(node).work(node) for node in live if node not in views}
        kernels = self._make_kernels(work)
        self._place_intermediates(live, kernels, graph.outputs.values(), written, views)
        self._copy_outputs(graph, written)
        constant_bytes = self.byte_length - self._intermediate_bytes + sum(memory.byte_length for memory in self.shared)
        self.plan = CompiledPlan.from_kernels(self._planned(), folded, live, (self._intermediate_bytes, constant_bytes))
        self.expected_seconds, self.is_measured = sum(work.values()) * SECONDS_PER_OPERATION, False
        shared.enter(self._shared)

    @property
    def shared(self) -> tuple[Memory, ...]:
        """The memory of constants that other graphs may use as well."""
        return tuple(self._shared.values())

    @staticmethod
    def compile_seconds(graph: Graph) -> float:
        """Estimate the compile time, to choose inline or thread."""
        folded, live = split_constant(graph)
        places = sum(
            sum(shape)
            for node in (*live, *folded)
            if node.operator.category == "convolution"
            for shape in (node.outputs[0].shape, *(value.descriptor.shape for value in node.inputs))
        )
        work = sum(entry_of(node).work(node) for node in folded)
        nodes = len(live) + len(folded)
        return nodes * SECONDS_PER_NODE + places * SECONDS_PER_PLACE + work * SECONDS_PER_OPERATION

    # --- building --------------------------------------------------------------------------------------------

    def _new_slot(self, value: Value | None, array: Array | None) -> int:
        slot = len(self._template)
        self._template.append(array)
        if value is not None:
            self._slots[value] = slot
        return slot

    def _fold(self, graph: Graph, folded: list[Node], live: list[Node], shared: SharedConstants) -> set[Value]:
        """Compute values that depend on no input and are not shared yet; keep those that live nodes and outputs read.

        Returns:
            The constants among the needed values.
        """
        produced = {result for node in folded for result in node.results}
        needed = {value: None for node in live for value in node.inputs} | dict.fromkeys(graph.outputs.values())
        constants = [value for value in needed if isinstance(value, Constant) or value in produced]
        identities = Identities(graph, folded, shared)
        there: dict[Value, Memory] = {}
        for value in constants:
            found = shared.find(identities.of(value))
            if found is not None:
                there[value] = found
        arrays = _compute([value for value in constants if value not in there], folded)
        for value in constants:
            self._keep(value, identities.of(value), there.get(value), arrays)
        return set(constants)

    def _keep(
        self, value: Value, identity: Identity | None, there: Memory | None, arrays: Mapping[Value, Array]
    ) -> None:
        """Give a constant its slot, with its own array or with a shared one."""
        if identity is None:
            array = arrays[value]
            # The owner of a constant buffer counts its memory.
            if not (isinstance(value, Constant) and isinstance(value.data, Storage)):
                self.byte_length += array.nbytes
        else:
            made = self._shared.get(identity) if there is None else there
            made = Memory(arrays[value], arrays[value].nbytes) if made is None else made
            self._shared[identity] = made
            array = made.data
        self._new_slot(value, array)

    def _place_outputs(self, graph: Graph, constants: set[Value], views: Mapping[Node, View]) -> set[Value]:
        """Give each output a slot; a node writes directly into it, unless its value is a view or constant."""
        written: set[Value] = set()
        for name, value in graph.outputs.items():
            computed = isinstance(value, Output) and value not in constants and value.node not in views
            direct = computed and value not in written
            self._output_slots[name] = self._new_slot(value if direct else None, None)
            if direct:
                written.add(value)
        return written

    def _place_intermediates(
        self,
        nodes: list[Node],
        kernels: Mapping[Node, Kernel],
        outputs: Iterable[Value],
        written: set[Value],
        views: Mapping[Node, View],
    ) -> None:
        """Place intermediates in the arena and make the list of calls."""
        bases: dict[Value, Value] = {node.results[0]: next(iter(node.inputs)) for node in views}
        arena = lay_out(lifetimes(nodes, bases, outputs, written))
        memory = np.empty(arena.byte_length, np.uint8)
        self.byte_length += arena.byte_length
        self._intermediate_bytes += arena.byte_length
        for value, offset in arena.offsets.items():
            d = value.descriptor
            self._new_slot(value, np.ndarray(d.shape, d.data_type, memory, offset))
        for node in nodes:
            if node in kernels:
                slots = [self._slots[value] for value in (*node.inputs, *node.results)]
                self._calls.append(Call(kernels[node], itemgetter(*slots), node).prepared(self._template))
            else:
                self._place_view(node, views[node])

    def _make_kernels(self, work: Mapping[Node, float]) -> dict[Node, Kernel]:
        """Make the kernels, which share their scratch, by falling work: the node with most work usually needs most."""
        pool = ScratchPool()
        kernels = pool.make(
            {node: partial(entry_of(node).make, node) for node in sorted(work, key=lambda node: -work[node])}
        )
        self.byte_length += pool.memory.nbytes
        self._intermediate_bytes += pool.memory.nbytes
        return kernels

    def _place_view(self, node: Node, view: View) -> None:
        base = self._slots[next(iter(node.inputs))]
        array = self._template[base]
        slot = self._new_slot(node.results[0], None if array is None else view(array))
        if array is None:
            self._late_views.append(LateView(slot, base, view))

    def _copy_outputs(self, graph: Graph, written: set[Value]) -> None:
        """Copy outputs that no node writes directly: views, constants, one value under two names."""
        for name, value in graph.outputs.items():
            slot = self._output_slots[name]
            if value not in written or self._slots[value] != slot:
                self._calls.append(Call(_copy, itemgetter(self._slots[value], slot), None))
                self._output_copies.append(value.node.drawn if isinstance(value, Output) else ())

    def _planned(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return the name of each call, and the places of the operators that it computes."""
        nodes = [call.node for call in self._calls if call.node is not None]
        computing = [(node.operator.spec_name, node.drawn) for node in nodes]
        return [*computing, *(("copy", drawn) for drawn in self._output_copies)]

    # --- running ---------------------------------------------------------------------------------------------

    def run(
        self,
        inputs: Mapping[str, HostArray],
        outputs: Mapping[str, HostArray],
        timings: list[KernelTiming] | None = None,
    ) -> None:
        """Compute ``outputs`` from ``inputs``, and append the duration of each kernel to ``timings``, if given.

        Raises:
            DispatchError: a kernel raised.
        """
        is_short = self.is_measured and self.expected_seconds < SHORT_SECONDS
        clock = perf_counter if is_short else computing_time
        started = clock()
        slots = self._template.copy()
        for name, slot in self._input_slots.items():
            slots[slot] = inputs[name]
        for name, slot in self._output_slots.items():
            slots[slot] = outputs[name]
        for late in self._late_views:
            base = slots[late.base]
            assert base is not None  # noqa: S101 - they are in the order of their bases
            slots[late.slot] = late.view(base)
        calls = self._calls if timings is None else self._timed_calls()
        with np.errstate(all="ignore"):
            for call in calls:
                run = call.run
                try:
                    if run is None:
                        call.kernel(*call.pick(slots))
                    else:
                        run()
                except DispatchError:
                    raise
                except Exception as error:
                    raise DispatchError.from_error(call.node, error) from error
                if self.stopped:
                    break
        seconds = clock() - started
        # The wall clock also counts other processes: its value is limited, so that the next run is measured well.
        self.expected_seconds = min(seconds, SHORT_SECONDS) if is_short else seconds
        self.is_measured = True
        if timings is not None:
            timings += self._timings

    def _timed_calls(self) -> list[Call]:
        """Return the calls with kernels that append their durations to ``_timings``."""
        if not self._timed:
            from webnn_py.devices.numpy.timed_kernel import TimedKernel  # noqa: PLC0415 - imported when it is used

            self._timed = [
                Call(TimedKernel(call.kernel, call.run, call.node, self._timings), call.pick, call.node)
                for call in self._calls
            ]
        self._timings.clear()
        return self._timed

    def release(self) -> None:
        """Drop all arrays."""
        self._template = []
        self._calls = []
        self._timed = []
        self._late_views = []
        self._shared = {}


def _compute(wanted: list[Value], folded: list[Node]) -> dict[Value, Array]:
    """Return the arrays of constants and of values computed from constants only; run no nodes that are not needed.

    Args:
        wanted: the values.
        folded: nodes that depend on no input, in an order in which they can run.
    """
    arrays: dict[Value, Array] = {}
    needed = set(wanted)
    nodes = []
    for node in reversed(folded):
        if not needed.isdisjoint(node.results):
            nodes.append(node)
            needed.update(node.inputs)
    arrays.update((value, constant_array(value.data)) for value in needed if isinstance(value, Constant))
    for node in reversed(nodes):
        try:
            arrays.update(zip(node.results, run_node(node, [arrays[value] for value in node.inputs]), strict=True))
        except Exception as error:
            raise DispatchError.from_error(node, error) from error
    return arrays


def _copy(source: Array, output: Array) -> None:
    np.copyto(output, source)
