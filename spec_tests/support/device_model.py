"""A simple reference model of a context: plain arrays, two lists, no tasks.

``Model`` has the methods of a context. Each acts as the text says its script steps act, and appends its device steps
to a list; ``turn()`` runs what two timelines would run before both have to wait. A device step is a generator that
yields the names of the device's own steps, so that a step can be made to fail or to wait.
"""

from collections import deque
from collections.abc import Callable, Generator

import attrs
import numpy as np


class Injected(Exception):  # noqa: N818 - what a device raised, not an error of the model's
    """The failure that a test has asked for."""


@attrs.define
class Expected:
    """The expected settlement of a promise: its state, and a value or the name and a part of the text of its error."""

    state: str = "pending"
    outcome: object = None

    def settle(self, state, outcome):
        if self.state == "pending":
            self.state, self.outcome = state, outcome


@attrs.define(eq=False)
class ModelBuffer:
    data_type: str
    shape: tuple[int, ...]
    data: np.ndarray | None = None
    failure: str | None = None
    destroyed: bool = False
    pending_reads: list[Expected] = attrs.field(factory=list)


@attrs.define(eq=False)
class ModelGraph:
    compute: Callable
    byte_length: int
    compiled: bool = False
    destroyed: bool = False


@attrs.define(eq=False)
class Operation:
    steps: Generator
    settled: Callable[[str | None], None] | None = None
    aborted: Callable[[], None] | None = None
    lost: Callable[[], None] | None = None
    abortable: bool = True
    byte_length: int = 0


@attrs.define
class Model:
    """A context on a device that can be made to fail, wait or be lost; on some its loss ends a build, with no graph."""

    ends_builds: bool = False
    log: list[str] = attrs.field(factory=list)
    failing: dict[str, str] = attrs.field(factory=dict)
    waiting: set[str] = attrs.field(factory=set)
    buffers: list[ModelBuffer] = attrs.field(factory=list)
    graphs: list[ModelGraph] = attrs.field(factory=list)
    device: deque = attrs.field(factory=deque)
    script: deque = attrs.field(factory=deque)
    lost: str | None = None
    permits: int | None = None
    stepping: bool = False
    script_permits: int | None = None
    closed: bool = False
    host_copies: int = 0
    staged_bytes: int = 0
    running: tuple[Operation, str] | None = None
    unblocked: bool = False

    # --- the methods of a context ----------------------------------------------------------------------------

    def create_buffer(self, data_type, shape):
        expected, buffer = Expected(), ModelBuffer(data_type, shape)
        if self.lost is not None:
            expected.settle("rejected", ("InvalidStateError", self.lost))
            return expected
        self.buffers.append(buffer)

        def allocate():
            yield "allocate"
            buffer.data = np.zeros(shape, data_type)

        def settled(failure):
            if failure is None:
                expected.settle("fulfilled", buffer)
            else:
                self.destroy_buffer(buffer)
                expected.settle("rejected", ("UnknownError", failure))

        self.device.append(Operation(allocate(), settled, lost=self._losing(expected)))
        return expected

    def build(self, compute, byte_length):
        expected, graph = Expected(), ModelGraph(compute, byte_length)
        self.graphs.append(graph)

        def compile_graph():
            yield "compile"
            graph.compiled = self.lost is None or not self.ends_builds

        def settled(failure):
            if failure is None:
                expected.settle("fulfilled", graph)
            else:
                self.destroy_graph(graph)
                expected.settle("rejected", ("OperationError", failure))

        self.device.append(Operation(compile_graph(), settled, lost=self._losing(expected)))
        return expected

    def write_buffer(self, buffer, array):
        if buffer.destroyed:
            return "DestroyedBufferError"
        copied = array.copy()

        def write():
            self.host_copies += 1
            try:
                yield "write"
            except Injected as failure:
                buffer.failure = str(failure)
            else:
                buffer.data, buffer.failure = copied, None

        self.device.append(Operation(write(), byte_length=copied.nbytes))
        return None

    def dispatch(self, graph, inputs, outputs):
        if graph.destroyed:
            return "InvalidStateError"
        used = [*inputs.values(), *outputs.values()]
        if len(set(map(id, used))) < len(used):
            return "TypeError"
        if any(buffer.destroyed for buffer in used):
            return "DestroyedBufferError"

        def mark(failure):
            for buffer in outputs.values():
                buffer.failure = failure

        def run():
            failures = [buffer.failure for buffer in inputs.values() if buffer.failure is not None]
            if failures:
                mark(failures[0])
                return
            try:
                yield "dispatch"
            except Injected as failure:
                mark(str(failure))
                return
            mark(None)
            results = graph.compute(**{name: buffer.data for name, buffer in inputs.items()})
            for name, buffer in outputs.items():
                buffer.data = results[name]

        self.device.append(Operation(run()))
        return None

    def read_buffer(self, buffer):
        expected = Expected()
        if buffer.destroyed:
            expected.settle("rejected", ("DestroyedBufferError", ""))
            return expected
        buffer.pending_reads.append(expected)
        staged = []

        def read():
            if buffer.failure is not None:
                raise Injected(buffer.failure)
            self.host_copies += 1
            yield "read"
            staged.append(buffer.data.copy())
            self.staged_bytes += buffer.data.nbytes

        def take():
            self.staged_bytes -= sum(array.nbytes for array in staged)

        def settled(failure):
            take()
            if failure is None:
                expected.settle("fulfilled", staged[0])
            else:
                expected.settle("rejected", ("UnknownError", failure))

        def aborted():
            take()
            expected.settle("rejected", ("InvalidStateError", self.lost))

        self.device.append(Operation(read(), settled, aborted))
        return expected

    def destroy_buffer(self, buffer):
        if buffer.destroyed:
            return
        buffer.destroyed = True
        for expected in buffer.pending_reads:
            expected.settle("rejected", ("InvalidStateError", "while the read was pending"))

        def release():
            if buffer.data is not None:
                self.log.append("free")
                buffer.data = None
            yield from ()

        self.device.append(Operation(release(), abortable=False))

    def destroy_graph(self, graph):
        if graph.destroyed:
            return
        graph.destroyed = True

        def release():
            if graph.compiled:
                self.log.append("release_graph")
                graph.compiled = False
            yield from ()

        self.device.append(Operation(release(), abortable=False))

    def lose(self, message):
        if self.lost is not None:
            return
        self.lost = message
        for graph in self.graphs:
            self.destroy_graph(graph)
        for buffer in self.buffers:
            self.destroy_buffer(buffer)
        for operation in (*(() if self.running is None else self.running[:1]), *self.device):
            if operation.lost is not None:
                operation.lost()
        self.log.append("stop")

    def device_lost(self, message):
        if not self.closed:
            self.script.append(lambda: self.lose(message))

    def _losing(self, expected):
        return lambda: expected.settle("rejected", ("InvalidStateError", self.lost))

    # --- what statistics() should say ------------------------------------------------------------------------

    @property
    def statistics(self):
        held = [buffer.data.nbytes for buffer in self.buffers if buffer.data is not None]
        graphs = [graph.byte_length for graph in self.graphs if graph.compiled]
        queued = [operation.byte_length for operation in self.device]
        if self.running is not None:
            queued.append(self.running[0].byte_length)
        live_bytes = sum(held) + sum(graphs) + self.staged_bytes
        return len(held), live_bytes, len(queued), sum(queued), self.host_copies

    # --- time ------------------------------------------------------------------------------------------------

    def step(self, count):
        """Let the paused device timeline run up to this many steps, and return how many it will run."""
        self.permits = min(count, len(self.device))
        self.stepping = True
        return self.permits

    def unblock(self):
        """End every wait, also of steps that have not begun."""
        self.waiting.clear()
        self.unblocked = self.running is not None

    def turn(self):
        """Run everything that can run."""
        while self._run_device() or self._run_script():
            pass
        if self.lost is not None and not self.device and self.running is None and not self.closed:
            self.closed = True
            self.log.append("close")
        if self.running is None and not self.permits:
            self.stepping = False

    def _run_device(self):
        if self.unblocked:
            operation, name = self.running
            self.running, self.unblocked = None, False
            self._carry_on(operation, self._outcome(name))
            return True
        if not self.device or self.running is not None or self.permits == 0:
            return False
        if self.permits is not None:
            self.permits -= 1
        operation = self.device.popleft()
        if self.lost is not None and operation.abortable:
            self._say_aborted(operation)
        else:
            self._carry_on(operation, None)
        return True

    def _carry_on(self, operation, failure):
        """Run an operation from where it is to its end, or to a step that waits."""
        try:
            while True:
                name = next(operation.steps) if failure is None else operation.steps.throw(Injected(failure))
                self.log.append(name)
                if name in self.waiting:
                    self.waiting.remove(name)
                    self.running = operation, name
                    return
                failure = self._outcome(name)
        except StopIteration:
            self._say_settled(operation, None)
        except Injected as told:
            self._say_settled(operation, str(told))

    def _outcome(self, name):
        return self.failing.pop(name, None)

    def _say_settled(self, operation, failure):
        if self.lost is not None and operation.abortable:
            self._say_aborted(operation)
        elif operation.settled is not None:
            self.script.append(lambda: operation.settled(failure))

    def _say_aborted(self, operation):
        if operation.aborted is not None:
            self.script.append(operation.aborted)

    def _run_script(self):
        if not self.script or self.script_permits == 0:
            return False
        if self.script_permits is not None:
            self.script_permits -= 1
        self.script.popleft()()
        return True
