"""A graph that is ready to run: its bind groups and its constants."""

import numpy as np

from spec_tests.support.drawing import build_add_one
from spec_tests.support.four_floats import ONES, buffers
from webnn_py import MLGraphBuilder
from webnn_py.devices.wgpu.runtime.executable import MOST_GROUPS


async def test_a_graph_runs_on_more_buffers_than_it_keeps_bind_groups_for(gpu):
    graph = await build_add_one(gpu, [4])
    given, computed = [await buffers(gpu, MOST_GROUPS + 3) for _ in range(2)]
    for number, x in enumerate(given):
        gpu.write_buffer(x, ONES * number)
    await gpu.drain()
    for x, y in zip(given, computed, strict=True):  # nothing is submitted in between
        gpu.dispatch(graph, {"x": x}, {"y": y})
    for number, y in enumerate(computed):
        np.testing.assert_array_equal(await gpu.read_buffer(y), ONES * (number + 1))


class CallsOfLibrary:
    """An engine's C functions, and the names of the functions of the queue that are called."""

    def __init__(self, library):
        self._library = library
        self.calls = []

    def __getattr__(self, name):
        if name.startswith("wgpuQueue"):
            self.calls.append(name)
        return getattr(self._library, name)


async def test_a_build_submits_its_constants_and_leaves_nothing_of_them_to_the_first_dispatch(gpu, queue, monkeypatch):
    library = CallsOfLibrary(queue.engine._lib)
    monkeypatch.setattr(queue.engine, "_lib", library)

    builder = MLGraphBuilder(gpu)
    x = builder.input("x", data_type="float32", shape=[4])
    graph = await builder.build({"y": builder.add(x, builder.constant(ONES))})
    assert library.calls == ["wgpuQueueWriteBuffer", "wgpuQueueSubmit"]
    library.calls.clear()
    builder = MLGraphBuilder(gpu)
    other = await builder.build({"y": builder.relu(builder.input("x", data_type="float32", shape=[4]))})
    assert library.calls == [], "there is nothing to submit"
    graph.destroy()
    other.destroy()
