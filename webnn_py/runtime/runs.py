"""One run of a session: what it needs, and putting it on the device timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import trio

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.runtime.bindings import Feed, Fetches, check_distinct, check_places, check_targets
from webnn_py.runtime.contexts import OpenContext, created
from webnn_py.runtime.tensor import Tensor

ShapeKey = tuple[tuple[int, ...], ...]
"""The shapes of the inputs that a model leaves open, in their order."""


@attrs.frozen(eq=False)
class Request:
    """A run that was checked as far as it could be without its graph.

    Attributes:
        feeds: what each input is fed with.
        fetches: what is handed out, and where it goes.
        shapes: the shapes of the inputs that the model leaves open.
        fresh_names: the outputs for which tensors on the device are to be made.
    """

    feeds: Mapping[str, Feed]
    fetches: Fetches
    shapes: Mapping[str, tuple[int, ...]]
    fresh_names: tuple[str, ...]

    @property
    def key(self) -> ShapeKey:
        """The key of the run's graph among those of the session."""
        return tuple(self.shapes.values())


@attrs.frozen(eq=False)
class BoundGraph:
    """The graph for one set of shapes, and the session's own buffers for what has no place on the device.

    One buffer for each is enough, also for runs that overlap: the device timeline writes, computes and reads in order.
    """

    graph: MLGraph
    inputs: dict[str, MLBuffer] = attrs.field(factory=dict)
    outputs: dict[str, MLBuffer] = attrs.field(factory=dict)

    def is_ready(self, request: Request) -> bool:
        """Return whether all buffers of a run are there."""
        return not (request.fresh_names or self._missing(request))

    def _missing(self, request: Request) -> list[tuple[dict[str, MLBuffer], str, MLOperandDescriptor]]:
        """Return where the buffers come that the session lacks for a run, and for what they are."""
        feeds, targets = request.feeds, request.fetches.targets
        inputs = [
            (self.inputs, name, descriptor)
            for name, descriptor in self.graph.input_descriptors.items()
            if name not in self.inputs and not isinstance(feeds[name], Tensor)
        ]
        outputs = [
            (self.outputs, name, descriptor)
            for name, descriptor in self.graph.output_descriptors.items()
            if name not in self.outputs
            and name not in request.fresh_names
            and not isinstance(targets.get(name), Tensor)
        ]
        return inputs + outputs

    async def make_buffers(self, opened: OpenContext, request: Request, fresh: dict[str, MLBuffer]) -> None:
        """Create the buffers that a run lacks; those of results that are handed out come into ``fresh``."""
        handed_out = [(fresh, name, self.graph.output_descriptors[name]) for name in request.fresh_names]
        for place, name, descriptor in handed_out + self._missing(request):
            place[name] = await created(opened.context, descriptor.data_type, descriptor.shape)

    def check(self, opened: OpenContext, request: Request) -> None:
        """Check what may have changed while the run waited, and the outputs, whose shapes are now known.

        Raises:
            InvalidStateError: a tensor was disposed of, or its device was lost.
            TypeError: a place does not fit, or is given twice, or is on another device.
            NotSupportedError: a place is a GPU buffer, and the device has none.
        """
        targets = request.fetches.targets
        check_targets(targets, self.graph.output_descriptors)
        check_distinct(request.feeds, targets, self.graph.in_place)
        check_places("input", request.feeds, opened)
        check_places("output", targets, opened)

    def enqueue(self, opened: OpenContext, request: Request, fresh: Mapping[str, MLBuffer]) -> Enqueued:
        """Write, dispatch and read: all of it is enqueued before this returns."""
        context, targets = opened.context, request.fetches.targets
        inputs, outputs = {}, {}
        for name in self.graph.input_descriptors:
            feed = request.feeds[name]
            if isinstance(feed, Tensor):
                inputs[name] = feed._buffer_on(opened, "run", name)
            else:
                inputs[name] = self.inputs[name]
                context.write_buffer(inputs[name], feed)
        for name in self.graph.output_descriptors:
            target = targets.get(name)
            if isinstance(target, Tensor):
                outputs[name] = target._buffer_on(opened, "run", name)
            else:
                outputs[name] = fresh[name] if name in fresh else self.outputs[name]
        context.dispatch(self.graph, inputs, outputs)
        enqueued = Enqueued(self.graph, inputs, outputs)
        for name in request.fetches.names:
            target = targets.get(name)
            if isinstance(target, Tensor):
                enqueued.results[name] = target
            elif name in fresh:
                enqueued.results[name] = Tensor._on_device(fresh[name], opened.hold())
            elif target is None:
                enqueued.reads[name] = context.read_buffer(outputs[name])
            else:
                enqueued.reads[name] = context.read_buffer(outputs[name], out=target)
                given = request.fetches.tensors.get(name)
                descriptor = self.graph.output_descriptors[name]
                enqueued.results[name] = Tensor._on_host(target, descriptor) if given is None else given
        return enqueued

    def destroy_buffers(self) -> None:
        """Destroy the session's own buffers, which rejects what is being read."""
        for buffer in (*self.inputs.values(), *self.outputs.values()):
            buffer.destroy()


@attrs.frozen(eq=False)
class Enqueued:
    """A run on the device timeline.

    Attributes:
        graph: the graph.
        inputs: the buffers that it reads.
        outputs: the buffers that it writes.
        results: the outputs that are handed out as tensors that are known already.
        reads: the promises of the others.
    """

    graph: MLGraph
    inputs: Mapping[str, MLBuffer]
    outputs: Mapping[str, MLBuffer]
    results: dict[str, Tensor] = attrs.field(factory=dict)
    reads: dict[str, MLPromise[Any]] = attrs.field(factory=dict)

    async def gathered(self) -> dict[str, Tensor]:
        """Wait for what is read, and return the results in the order of the outputs."""
        if not self.reads:
            await trio.lowlevel.checkpoint()
        for name, data in zip(self.reads, await MLPromise.all(self.reads.values()), strict=True):
            if data is not None:
                self.results[name] = Tensor._on_host(data, self.graph.output_descriptors[name])
        if len(self.results) > 1:
            return {name: self.results[name] for name in self.graph.output_descriptors if name in self.results}
        return self.results
