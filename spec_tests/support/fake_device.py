"""A device for tests: numpy's results, with every step logged, and made to fail, wait or be lost on demand."""

from spec_tests.support.watched_device import StepsOnDemand
from webnn_py.devices.numpy.backend import NumpyBackend


class FakeDevice(StepsOnDemand, NumpyBackend):
    """Runs everything inline."""

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
