"""A device for tests: numpy's results, with every step logged, and made to fail, wait or be lost on demand."""

from collections.abc import Awaitable, Callable

import trio

from webnn_py.device.on_numpy.backend import NumpyBackend


class FakeDevice(NumpyBackend):
    """Runs everything inline.

    Attributes:
        log: the steps in the order in which they began: "allocate", "write", "read", "compile", "dispatch", "free",
            "release_graph", "stop", "close".
        failing: steps that will raise this, each once.
        waiting: steps that will not end before their event is set, each once.
    """

    def __init__(self):
        super().__init__()
        self.log: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.waiting: dict[str, trio.Event] = {}
        self._held: list[trio.Event] = []

    def _step(self, name: str, step: Callable):
        self.log.append(name)
        event = self.waiting.pop(name, None)
        if event is not None:
            self._held.append(event)
            return self._later(name, event, step)
        self._fail(name)
        return step()

    async def _later(self, name: str, event: trio.Event, step: Callable) -> Awaitable:
        await event.wait()
        self._fail(name)
        return step()

    def _fail(self, name: str) -> None:
        error = self.failing.pop(name, None)
        if error is not None:
            raise error

    def let_go(self) -> None:
        """End every wait: a test is over, perhaps by a failure, and must not hang."""
        for event in (*self.waiting.values(), *self._held):
            event.set()

    def allocate(self, descriptor):
        return self._step("allocate", lambda: super(FakeDevice, self).allocate(descriptor))

    def write(self, storage, data):
        return self._step("write", lambda: super(FakeDevice, self).write(storage, data))

    def read(self, storage):
        return self._step("read", lambda: storage.data.copy())  # noqa: PLW0108 - looked up when it runs

    def free(self, data):
        self.log.append("free")
        self._fail("free")

    def compile(self, graph):
        return self._step("compile", lambda: super(FakeDevice, self).compile(graph))

    def dispatch(self, compiled, inputs, outputs):
        compiled.expected_seconds = 0.0
        return self._step("dispatch", lambda: super(FakeDevice, self).dispatch(compiled, inputs, outputs))

    def release_graph(self, compiled):
        self.log.append("release_graph")
        super().release_graph(compiled)

    def stop(self):
        self.log.append("stop")

    def close(self):
        self.log.append("close")
