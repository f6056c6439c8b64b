"""A graph with named dimensions, compiled for numpy once: everything that depends on no size is made at build.

The graph is planned for the largest sizes. For other sizes the intermediates are prefixes of the largest ones, and only
the nodes that depend on a size get other kernels and views. Sizes for which a view of the largest sizes would need a
copy are rare, and get a list of calls of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

import attrs

from webnn_py.device.backend import HostArray, KernelTiming, Storage
from webnn_py.device.compiling.plan import split_constant
from webnn_py.device.compiling.shared_constants import SharedConstants
from webnn_py.device.on_numpy.executable import Call, LateView, NumpyGraph
from webnn_py.device.on_numpy.table import Array, Kernel, View, entry_of
from webnn_py.graph import Constant, Node, Value
from webnn_py.named_sizes.decisions import Sizes
from webnn_py.named_sizes.values import values_of
from webnn_py.sized_graphs import DynamicGraph, is_dynamic_node, sized_node, with_constants

MOST_KEPT: Final = 16
"""The sets of sizes whose calls are kept."""

SizesKey = tuple[int, ...]


@attrs.frozen(eq=False)
class SizedCalls:
    """The calls and arrays of a dispatch with certain sizes."""

    template: list[Array | None]
    late_views: list[LateView]
    calls: list[Call]


class DynamicNumpyGraph(NumpyGraph):
    """A graph compiled at its largest sizes, from which other sizes are derived; run by one thread at a time.

    Args:
        dynamic: the graph to compile.
        constants: the constants that graphs of the context share.
    """

    def __init__(self, dynamic: DynamicGraph, constants: SharedConstants) -> None:
        dynamic = attrs.evolve(dynamic, graph=with_constants(dynamic.graph, _held))
        self._dynamic = dynamic
        self._constants = constants
        self._kept: dict[SizesKey, SizedCalls | NumpyGraph] = {}
        self._views: Mapping[Node, object] = {}
        largest = dynamic.at(dynamic.names.largest)
        super().__init__(largest.graph, constants)
        self._largest = SizedCalls(self._template, self._late_views, self._calls)
        self._drawn_nodes = {sized: node for node, sized in largest.nodes.items()}
        self._drawn_values = {
            result: drawn
            for node, sized in largest.nodes.items()
            for drawn, result in zip((*node.inputs, *node.results), (*sized.inputs, *sized.results), strict=True)
        }
        live = set(split_constant(dynamic.graph)[1])
        folded = split_constant(largest.graph)[0]
        self._folds_sizes = any(self._drawn_nodes[node] in live for node in folded)  # constants of the largest sizes
        self._dynamic_nodes = {sized for node, sized in largest.nodes.items() if is_dynamic_node(node)}
        self._descriptors = {
            self._slots[result]: self._drawn_values[result].descriptor
            for node in self._dynamic_nodes.difference(self._views)
            for result in node.results
            if result in self._slots and self._template[self._slots[result]] is not None
        }

    # --- building --------------------------------------------------------------------------------------------

    def _place_intermediates(
        self,
        nodes: list[Node],
        kernels: Mapping[Node, Kernel],
        outputs: Iterable[Value],
        written: set[Value],
        views: Mapping[Node, View],
    ) -> None:
        self._views = views
        super()._place_intermediates(nodes, kernels, outputs, written, views)

    def _resized(self, sizes: Sizes) -> SizedCalls:
        """Return the calls for these sizes, in the memory of the largest."""
        largest = self._largest
        template = largest.template.copy()
        for slot, descriptor in self._descriptors.items():
            array, shape = largest.template[slot], values_of(descriptor.shape, sizes)
            assert array is not None  # noqa: S101 - arrays of a dispatch are excluded
            template[slot] = array.reshape(-1)[: math.prod(shape)].reshape(shape)
        late = {view.slot: view for view in largest.late_views}
        for node in self._views:
            if node in self._dynamic_nodes:
                self._look_again(node, sizes, template, late)
        calls = largest.calls.copy()
        kernels = self._pool.make(dict(self._makers(sizes)))
        for index, kernel in kernels.items():
            calls[index] = attrs.evolve(calls[index], kernel=kernel)
        return SizedCalls(template, list(late.values()), [call.prepared(template) for call in calls])

    def _look_again(self, node: Node, sizes: Sizes, template: list[Array | None], late: dict[int, LateView]) -> None:
        make = entry_of(node).view
        assert make is not None  # noqa: S101 - it is a view at the largest sizes
        view = make(sized_node(self._drawn_nodes[node], sizes, {}))
        slot, base = self._slots[node.results[0]], self._slots[next(iter(node.inputs))]
        array = template[base]
        if array is None:
            late[slot] = LateView(slot, base, view)
        else:
            template[slot] = view(array)

    def _makers(self, sizes: Sizes) -> Iterator[tuple[int, Callable[[], Kernel]]]:
        """Yield the makers of the kernels of calls that depend on sizes, by index."""
        for index, call in enumerate(self._largest.calls):
            if call.node in self._dynamic_nodes:
                node = sized_node(self._drawn_nodes[call.node], sizes, {})
                yield index, partial(entry_of(node).make, node)

    # --- running ---------------------------------------------------------------------------------------------

    def run(
        self,
        inputs: Mapping[str, HostArray],
        outputs: Mapping[str, HostArray],
        timings: list[KernelTiming] | None = None,
    ) -> None:
        """Compute ``outputs`` from ``inputs``, for the sizes that the inputs' shapes give to the names."""
        sizes = self._dynamic.names.sizes({name: array.shape for name, array in inputs.items()})
        made = self._made(sizes)
        if isinstance(made, NumpyGraph):
            made.run(inputs, outputs, timings)
            self.expected_seconds, self.is_measured = made.expected_seconds, True
            return
        if made.calls is not self._calls:
            self._template, self._late_views, self._calls, self._timed = made.template, made.late_views, made.calls, []
        super().run(inputs, outputs, timings)

    def _made(self, sizes: Sizes) -> SizedCalls | NumpyGraph:
        key = tuple(sizes.values())
        found = self._kept.pop(key, None)
        if found is None:
            found = self._newly_made(sizes)
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        self._kept[key] = found
        return found

    def _newly_made(self, sizes: Sizes) -> SizedCalls | NumpyGraph:
        if self._dynamic.covers(sizes) and not (self._folds_sizes and sizes != self._dynamic.names.largest):
            try:
                return self._resized(sizes)
            except ValueError:  # numpy refuses an impossible view
                pass
        return NumpyGraph(self._dynamic.at(sizes).graph, self._constants)

    def release(self) -> None:
        """Drop all arrays."""
        super().release()
        self._largest = SizedCalls([], [], [])
        self._kept = {}


def _held(constant: Constant) -> Constant:
    """Return a constant with its array, also for a constant buffer, which may be destroyed after the build."""
    data = constant.data.data if isinstance(constant.data, Storage) else constant.data
    return Constant(constant.descriptor, data, constant.key)
