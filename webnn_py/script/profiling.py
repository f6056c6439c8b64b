"""The operations of ``MLGraph.profile()`` and ``MLGraphBuilder.check_finite()``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from webnn_py.descriptors import MLOperandDescriptor, unsigned_long
from webnn_py.device.backend import HostArray, TimesKernels
from webnn_py.device.finite_check import NonFinite, first_non_finite
from webnn_py.device.measuring import Measurement, measure
from webnn_py.errors import InvalidStateError, NotSupportedError, UnknownError
from webnn_py.graph import Graph
from webnn_py.message_text import listed, shown
from webnn_py.script.argument_checks import refuse_proposals, reject_failed, unknown
from webnn_py.script.buffer_source import host_copy
from webnn_py.script.interfaces import ContextInterface, GraphInterface
from webnn_py.script.profile import GraphProfile
from webnn_py.script.refused_calls import rejected_promise
from webnn_py.timelines.device_timeline import DeviceOperation
from webnn_py.timelines.promise import MLPromise
from webnn_py.unreported_errors import calling_line

T = TypeVar("T")
ResultT = TypeVar("ResultT")


def enqueue_profile(graph: GraphInterface, feeds: object, repeat: object) -> MLPromise[GraphProfile]:
    """Enqueue the operation of :meth:`MLGraph.profile`."""
    method, context = "profile", graph._context
    context._trio_run.check("profile()")
    backend = context._device.backend
    try:
        times = _times(repeat)
        context._check_not_lost(method)
        if graph._destroyed:
            raise InvalidStateError("profile(): the graph is destroyed: destroy() was called on it")
        refuse_proposals(method, graph.input_descriptors.values())
        if not isinstance(backend, TimesKernels):
            raise NotSupportedError(
                f"profile(): {context.backend} tells no kernel's time; the device numpy does, and wgpu where the "
                "adapter has timestamp-query"
            )
        given = _arrays(method, feeds, graph.input_descriptors)
    except (TypeError, InvalidStateError, NotSupportedError, UnknownError) as error:
        return rejected_promise(context, method, error, graph)
    work = partial(measure, context._device, graph._handle, given, graph.output_descriptors, times)
    result: Callable[[Measurement], GraphProfile] = partial(GraphProfile.of, str(context.backend))
    return _enqueue(context, method, work, result, given)


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
    return _enqueue(
        context, method, partial(first_non_finite, context._device, graph, given), lambda found: found, given
    )


def _enqueue(
    context: ContextInterface,
    method: str,
    work: Callable[[], Awaitable[T]],
    result: Callable[[T], ResultT],
    given: Mapping[str, HostArray],
) -> MLPromise[ResultT]:
    """Enqueue work that makes and releases all that it needs, and settle a promise with what came of it.

    Called by a function here that a public method calls: the promise is of the line that called that.
    """
    promise: MLPromise[ResultT] = MLPromise._create(f"{method}()", context._trio_run, calling_line(3))
    found: list[T] = []

    async def find() -> None:
        found.append(await work())

    def settled(error: Exception | None) -> None:
        if error is None:
            promise._resolve(result(found.pop()))
        else:
            reject_failed(promise, unknown(method, error), context._device)

    aborted = partial(context._abort, promise, method)
    byte_length = sum(array.nbytes for array in given.values())
    context._timeline.enqueue(DeviceOperation(method, find, settled, aborted=aborted, held_bytes=byte_length))
    return promise


def _times(repeat: object) -> int:
    try:
        times = unsigned_long(repeat)
    except TypeError as error:
        raise TypeError(f"profile(): repeat {error}") from None
    if times < 1:
        raise TypeError("profile(): repeat is 0; it must be at least 1")
    return times


def _arrays(
    method: str, feeds: object, descriptors: Mapping[str, MLOperandDescriptor], spare: Collection[str] = ()
) -> dict[str, HostArray]:
    """Copies of what the inputs are given; what is given to ``spare`` ones is left out."""
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
