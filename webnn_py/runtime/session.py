"""``InferenceSession``: a model, run on feeds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, Self, final, get_args

import attrs
import trio

from webnn_py.checking import NonFinite
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import converted
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import InvalidStateError, NotSupportedError
from webnn_py.core.handle import Handle
from webnn_py.core.message_text import nearest, shown, visible
from webnn_py.core.operators.idl import enumeration
from webnn_py.profiling import GraphProfile, profile
from webnn_py.runtime.bindings import ExpectedInputs, Fetches, check_places, checked_fetches
from webnn_py.runtime.capture import CapturedRun
from webnn_py.runtime.contexts import ContextReference, OpenContext
from webnn_py.runtime.models import Model, Progress
from webnn_py.runtime.records import TensorDescriptor, TensorLocation
from webnn_py.runtime.runs import BoundGraph, Enqueued, Request, ShapeKey
from webnn_py.runtime.tensor import Tensor

Feeds = Mapping[str, Any]
"""For each input, by name, a numpy array or a tensor."""

FetchesLike = Iterable[str] | Mapping[str, Any] | None
"""All outputs, some of them by name, or where they go by name."""

LOCATIONS: Final = get_args(TensorLocation)

WHILE_PENDING: Final = " while it was pending"


@attrs.frozen
class SessionOptions:
    """The options of a session.

    Attributes:
        on_device: the outputs that are handed out on the device.
        enable_graph_capture: whether the first run is frozen.
        progress: called with the number of nodes that are converted, and of all.
    """

    on_device: frozenset[str]
    enable_graph_capture: bool
    progress: Progress | None


@final
class InferenceSession(Handle):
    """A model, ready to be run; made by :meth:`Environment.create_session`.

    ``async with session:`` releases it at the end.

    Attributes:
        input_descriptors: data type and shape of every input, by name; names of dimensions are bound by the feeds.
        output_descriptors: data type and shape of every output, as far as the model says.
    """

    _made_by = "Environment.create_session()"

    input_descriptors: Mapping[str, TensorDescriptor]
    output_descriptors: Mapping[str, TensorDescriptor]
    _open_sessions: dict[InferenceSession, None]
    _hold: ContextReference
    _opened: OpenContext
    _model: Model
    _options: SessionOptions
    _expected: ExpectedInputs
    _everything: Fetches
    _captured: CapturedRun | None
    _bound_graphs: dict[ShapeKey, BoundGraph]
    _line: trio.Lock
    """First come, first served: runs stay in order while one waits for its graph or its buffers."""
    _released: bool

    @classmethod
    def _create(
        cls, open_sessions: dict[InferenceSession, None], hold: ContextReference, model: Model, options: SessionOptions
    ) -> Self:
        self = cls.__new__(cls)
        self._open_sessions = open_sessions
        self._hold = hold
        self._opened = hold.opened
        self._model = model
        self._options = options
        self._expected = ExpectedInputs(model.inputs, model.sizes)
        self._everything = Fetches(tuple(model.outputs))
        self._captured = None
        self._bound_graphs = {}
        self._line = trio.Lock()
        self._released = False
        self.input_descriptors = MappingProxyType(dict(model.inputs))
        self.output_descriptors = MappingProxyType(dict(model.outputs))
        return self

    # --- what it is ------------------------------------------------------------------------------------------

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in the model's order."""
        return tuple(self.input_descriptors)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in the model's order."""
        return tuple(self.output_descriptors)

    @property
    def in_place(self) -> Mapping[str, str]:
        """The outputs that a run may write into the tensor of an input, by name: that input.

        They are caches to which rows are added: with one tensor for both, only the new rows are written. A session has
        them, on devices that can do that, from when its graph is made: at once where the model says all shapes,
        otherwise at the first run. Of several graphs, those of all.
        """
        of_graphs = [bound.graph.in_place.items() for bound in self._bound_graphs.values()]
        return MappingProxyType(dict(set.intersection(*map(set, of_graphs)) if of_graphs else ()))

    @property
    def released(self) -> bool:
        """Return whether it was released."""
        return self._released

    # --- running ---------------------------------------------------------------------------------------------

    async def run(self, feeds: Feeds, fetches: FetchesLike = None) -> dict[str, Tensor]:
        """Run the model. Runs that overlap are run in the order in which they were called.

        Everything is checked before anything is enqueued, so a refused run changes nothing. Arrays are copied before
        the first checkpoint unless the graph for their shapes, or a buffer, has to be made first. Cancelling ends the
        wait; the session stays usable, and what was enqueued goes on.

        Args:
            feeds: for each input, by name, a numpy array or a tensor.
            fetches: None for all outputs; a list of names for some; or a mapping of names to where they go, an array
                or a tensor of the output's data type and shape, or None. With a mapping all outputs are returned. An
                output that is :attr:`in_place` may have the tensor of its input.

        Returns:
            The outputs by name: the tensors that were given, others where ``preferred_output_location`` says. Those
            on the device are their receiver's to dispose of; they may be used at once, before they are computed.

        Raises:
            TypeError: a name, data type, shape or device is not the session's, or a place is given twice.
            InvalidStateError: the session is released, before or during the call, the device is lost, or a tensor was
                disposed of.
            UnknownError: the device failed. Of outputs that stay on the device, reading them tells.
            UnsupportedModelError, ValueError, OperationError: no graph can be made for shapes seen first here.
        """
        self._check_usable("run")
        try:
            if self._options.enable_graph_capture:
                return await self._run_captured(feeds, fetches)
            request = self._request(feeds, fetches)
            bound = self._bound_graphs.get(request.key)
            if bound is None or self._line.locked() or not bound.is_ready(request):
                async with self._line:
                    enqueued = await self._prepare_and_enqueue(request)
            else:
                bound.check(self._opened, request)
                enqueued = bound.enqueue(self._opened, request, {})
            return await enqueued.gathered()
        except InvalidStateError:
            self._check_usable("run", WHILE_PENDING)
            raise

    def _request(self, feeds: Feeds, fetches: FetchesLike) -> Request:
        """Check the arguments of a run, as far as it can be done without its graph."""
        checked = self._expected.checked(feeds)
        wanted = checked_fetches(fetches, self._everything)
        on_device = self._options.on_device
        fresh: tuple[str, ...] = ()
        if on_device:
            fresh = tuple(name for name in wanted.names if name in on_device and name not in wanted.targets)
        return Request(checked, wanted, self._expected.shapes_of(checked), fresh)

    async def _prepare_and_enqueue(self, request: Request) -> Enqueued:
        """Make what the run lacks, one run at a time, then enqueue it."""
        self._check_usable("run", WHILE_PENDING)
        fresh: dict[str, MLBuffer] = {}
        try:
            bound = await self._bound_graph(request.shapes)
            bound.check(self._opened, request)
            await bound.make_buffers(self._opened, request, fresh)
            self._check_usable("run", WHILE_PENDING)
            bound.check(self._opened, request)
            return bound.enqueue(self._opened, request, fresh)
        except BaseException:
            for buffer in fresh.values():
                buffer.destroy()
            raise

    async def _prepare(self) -> None:
        """Make the graph, if the model says all shapes."""
        if not self._expected.open:
            await self._graph_for({})

    async def _bound_graph(self, shapes: Mapping[str, tuple[int, ...]], method: str = "run") -> BoundGraph:
        key = tuple(shapes.values())
        bound = self._bound_graphs.get(key)
        if bound is None:
            graph = await self._model.graph(self._opened, shapes, self._options.progress)
            if self._released:
                self._model.release(graph)
                self._check_usable(method, WHILE_PENDING)
            bound = self._bound_graphs[key] = BoundGraph(graph)
        return bound

    async def _graph_for(self, shapes: Mapping[str, tuple[int, ...]], method: str = "run") -> MLGraph:
        """Return the graph of runs, which is made if there is none.

        Args:
            shapes: the shapes of the inputs that the model leaves open, in their order.
            method: what needs it, for errors.
        """
        self._check_usable(method)
        async with self._line:
            self._check_usable(method, WHILE_PENDING)
            return (await self._bound_graph(shapes, method)).graph

    def _forget(self, key: ShapeKey) -> None:
        """Let go of the graph of shapes, which nothing uses, and of its buffers."""
        bound = self._bound_graphs.pop(key, None)
        if bound is not None:
            bound.destroy_buffers()
            self._model.release(bound.graph)

    async def _run_captured(self, feeds: Feeds, fetches: FetchesLike) -> dict[str, Tensor]:
        """Freeze the first run, and dispatch it again when it comes with the same tensors."""
        if self._captured is None:
            request = self._request(feeds, fetches)
            CapturedRun.check_first(request, self._options.on_device)
            async with self._line:
                self._check_usable("run", WHILE_PENDING)
                if self._captured is None:
                    enqueued = await self._prepare_and_enqueue(request)
                    self._captured = CapturedRun(request, enqueued)
                    return dict(enqueued.results)
        captured = self._captured
        if not captured.is_repeated_by(feeds, fetches):
            captured.check(self._request(feeds, fetches))
        run = captured.run
        self._opened.context.dispatch(run.graph, run.inputs, run.outputs)
        await trio.lowlevel.checkpoint()
        return dict(run.results)

    # --- looking into it -------------------------------------------------------------------------------------

    async def profile(self, feeds: Feeds, *, repeat: int = 10) -> GraphProfile:
        """Report where a run spends its time, by kernel: :func:`webnn_py.profiling.profile` of the graph for feeds.

        The graph is made if there is none for their shapes. Runs wait meanwhile, and their buffers are not touched.

        Args:
            feeds: as for :meth:`run`; what is on the device is read.
            repeat: how many runs there are with timings, and how many without, when the device is warm.

        Raises:
            TypeError: feeds are not the session's, or ``repeat`` is no integer from 1.
            NotSupportedError: the device does not time kernels.
            InvalidStateError: the session is released, before or during the call, or the device is lost.
            UnknownError: the device failed.
            UnsupportedModelError, ValueError, OperationError: no graph can be made for shapes seen first here.
        """
        shapes, arrays = await self._brought("profile", feeds)
        async with self._while_pending("profile"):
            graph = await self._graph_for(shapes, "profile")
            return await profile(graph, {name: arrays[name] for name in graph.input_descriptors}, repeat=repeat)

    async def check_finite(self, feeds: Feeds) -> NonFinite | None:
        """Find the node that makes the first NaN or infinity, as :func:`webnn_py.checking.check_finite` does.

        The model is converted again for the feeds' shapes, and its nodes are computed without being fused.

        Args:
            feeds: as for :meth:`run`; what is on the device is read.

        Returns:
            The first node, in the graph's order, that makes a NaN though none of its operands has one, or an infinity
            though all of them are finite; the first input or constant that brings a NaN; or None.

        Raises:
            TypeError: feeds are not the session's.
            NotSupportedError: the session is of an ``MLGraph``, which has no nodes any more.
            InvalidStateError: the session is released, before or during the call, or the device is lost.
            UnknownError: the device failed.
            UnsupportedModelError, ValueError: the model cannot be converted for these shapes.
        """
        shapes, arrays = await self._brought("check_finite", feeds)
        async with self._while_pending("check_finite"):
            return await self._model.check_finite(self._opened, shapes, arrays)

    async def _brought(self, method: str, feeds: Feeds) -> tuple[Mapping[str, tuple[int, ...]], dict[str, HostArray]]:
        """Check feeds, and copy those on the device to the host.

        Returns:
            The shapes of the inputs that the model leaves open, and all feeds as arrays.
        """
        self._check_usable(method)
        try:
            checked = self._expected.checked(feeds)
            shapes = self._expected.shapes_of(checked)
            check_places("input", checked, self._opened)
        except (TypeError, InvalidStateError, NotSupportedError) as error:
            raise type(error)(f"{method}(): {str(error).removeprefix('run(): ')}") from error.__cause__
        arrays = {}
        for name, feed in checked.items():
            arrays[name] = await feed.get_data() if isinstance(feed, Tensor) else feed
        return shapes, arrays

    @asynccontextmanager
    async def _while_pending(self, method: str) -> AsyncIterator[None]:
        """Distinguish a released session from other invalid states."""
        try:
            yield
        except InvalidStateError:
            self._check_usable(method, WHILE_PENDING)
            raise

    # --- the end ---------------------------------------------------------------------------------------------

    async def release(self) -> None:
        """Release the graphs and buffers; runs that are pending are rejected. Waits for the device.

        Tensors on the device that runs have given stay. The last session of an environment ends its device, unless
        something else needs it or the environment preserves it. The second call only waits. Raises nothing.
        """
        self._release()
        context = self._opened.context
        if self._opened.is_lost:
            await context.device_timeline.wait_ended()
        else:
            await context.drain()

    def _release(self) -> None:
        """Release the graphs and buffers without waiting."""
        if self._released:
            return
        self._released = True
        self._captured = None
        for bound in self._bound_graphs.values():
            bound.destroy_buffers()
            self._model.release(bound.graph)
        self._bound_graphs.clear()
        self._open_sessions.pop(self, None)
        self._hold.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.release()

    def _check_usable(self, method: str, when: str = "") -> None:
        if self._released:
            raise InvalidStateError(f"{method}(): the session was released{when}")
        if self._opened.is_lost:
            message = self._opened.context.lost_message
            raise InvalidStateError(
                f"{method}(): the device was lost{when}: {message}; create the session again for a fresh one"
            )

    def _described(self) -> str:
        inputs = ", ".join(f"{name}: {item}" for name, item in self.input_descriptors.items())
        outputs = ", ".join(f"{name}: {item}" for name, item in self.output_descriptors.items())
        return visible(f"({inputs}) -> ({outputs}){', released' if self._released else ''}")


def check_locations(preferred: object) -> None:
    """Check the option ``preferred_output_location`` as far as it can be done without the model.

    Raises:
        TypeError: it is no location, and no mapping to locations.
    """
    if isinstance(preferred, str):
        converted("create_session(): preferred_output_location", enumeration(LOCATIONS), preferred)
        return
    if not isinstance(preferred, Mapping):
        raise TypeError(
            f"create_session(): preferred_output_location is {shown(preferred)}; it must be one of "
            f"{', '.join(LOCATIONS)}, or a mapping of outputs' names to them"
        )
    for name, location in preferred.items():
        what = f"create_session(): preferred_output_location[{shown(name)}]"
        converted(what, enumeration(LOCATIONS), location)


def outputs_on_device(model: Model, preferred: TensorLocation | Mapping[str, TensorLocation]) -> frozenset[str]:
    """Return the outputs that are to stay on the device, by the option ``preferred_output_location``.

    Raises:
        TypeError: it names an output that there is not.
    """
    names = tuple(model.outputs)
    if isinstance(preferred, str):
        return frozenset() if preferred == "cpu" else frozenset(names)
    for name in preferred:
        if name not in names:
            raise TypeError(
                f"create_session(): preferred_output_location has {shown(name)}; the outputs are {list(names)}"
                f"{nearest(name, names)}"
            )
    return frozenset(name for name, location in preferred.items() if location != "cpu")
