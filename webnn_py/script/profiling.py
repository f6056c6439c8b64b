"""The operations of ``MLGraph.profile()`` and ``MLGraphBuilder.check_finite()``."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from webnn_py.descriptors import MLOperandDescriptor, converted, unsigned_long
from webnn_py.device.backend import HostArray, TimesKernels
from webnn_py.device.steps.finite_check import NonFinite, first_non_finite
from webnn_py.device.steps.measuring import Measurement, measure
from webnn_py.errors import InvalidStateError, NotSupportedError, UnknownError
from webnn_py.graph import Graph
from webnn_py.message_text import listed, shown
from webnn_py.script.argument_checks import refuse_proposals
from webnn_py.script.buffer_source import host_copy
from webnn_py.script.interfaces import ContextInterface, GraphInterface
from webnn_py.script.profile import GraphProfile
from webnn_py.script.refused_calls import rejected_promise
from webnn_py.timelines.promise import MLPromise

T = TypeVar("T")
ResultT = TypeVar("ResultT")


def enqueue_profile(graph: GraphInterface, feeds: object, repeat: object) -> MLPromise[GraphProfile]:
    """Enqueue the operation of :meth:`MLGraph.profile`."""
    method, context = "profile", graph._context
    context._trio_run.check("profile()")
    backend = context._device.backend
    try:
        times = converted("profile(): repeat", unsigned_long, repeat)
        if times < 1:
            raise TypeError("profile(): repeat is 0; it must be at least 1")
        context._check_not_lost(method)
        if graph._destroyed:
            raise InvalidStateError("profile(): the graph is destroyed: destroy() was called on it")
        refuse_proposals(method, graph.input_descriptors.values())
        if not isinstance(backend, TimesKernels):
            raise NotSupportedError(
                f"profile(): {context.backend} does not time kernels; the device numpy does, and wgpu where the "
                "adapter has timestamp-query"
            )
        given = _arrays(method, feeds, graph.input_descriptors)
    except (TypeError, InvalidStateError, NotSupportedError, UnknownError) as error:
        return rejected_promise(context, method, error, graph)
    measured: list[Measurement] = []

    async def work() -> None:
        device = context._device
        measured.append(await measure(device, graph._handle, given, graph.output_descriptors, times))

    def result() -> GraphProfile:
        return GraphProfile.of(str(context.backend), measured.pop())

    return context._enqueue(method, work, result, held_bytes=_byte_length(given), depth=3)


def enqueue_check_finite(
    context: ContextInterface, graph: Graph, feeds: object, names: Collection[str]
) -> MLPromise[NonFinite | None]:
    """Enqueue the operation of :meth:`MLGraphBuilder.check_finite`; ``names`` are those of all inputs."""
    method = "check_finite"
    try:
        refuse_proposals(method, graph.descriptors)
        given = _arrays(method, feeds, {name: value.descriptor for name, value in graph.inputs.items()}, names)
    except (TypeError, NotSupportedError, UnknownError) as error:
        return rejected_promise(context, method, error)
    found: list[NonFinite | None] = []

    async def work() -> None:
        found.append(await first_non_finite(context._device, graph, given))

    return context._enqueue(method, work, found.pop, held_bytes=_byte_length(given), depth=3)


def _byte_length(arrays: Mapping[str, HostArray]) -> int:
    return sum(array.nbytes for array in arrays.values())


def _arrays(
    method: str, feeds: object, descriptors: Mapping[str, MLOperandDescriptor], spare: Collection[str] = ()
) -> dict[str, HostArray]:
    """Return copies of the data of the inputs; data of ``spare`` inputs are left out."""
    if not isinstance(feeds, Mapping):
        raise TypeError(f"{method}(): feeds is {shown(feeds)}; it must be a mapping of the inputs' names to arrays")
    if not descriptors.keys() <= feeds.keys() <= {*descriptors, *spare}:
        given, wanted = listed(sorted(map(str, feeds))), listed(sorted(descriptors))
        raise TypeError(f"{method}(): feeds are of {given}; the graph's inputs are {wanted}, each of which needs one")
    arrays = {}
    for name, descriptor in descriptors.items():
        try:
            arrays[name] = host_copy(feeds[name], descriptor)
        except (TypeError, UnknownError) as error:
            raise type(error)(f"{method}(): feeds[{shown(name)}]: {error}") from error.__cause__
    return arrays
