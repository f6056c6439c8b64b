"""Pipelines: those that compile, those that do not, and how many are kept."""

import gc
from concurrent.futures import Future
from types import SimpleNamespace
from weakref import WeakSet

import pytest
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.drawing import build_add_one
from spec_tests.support.four_floats import check_add_one
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder, OperationError
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.wgpu.engines import wgpu_native
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.recently_used import Room
from webnn_py.devices.wgpu.records.table import find
from webnn_py.devices.wgpu.runtime import pipelines
from webnn_py.devices.wgpu.runtime.pipelines import PIPELINE_BYTES, Pipelines


@pytest.fixture
def _alone(monkeypatch):
    """No other test has compiled anything."""
    monkeypatch.setattr(Pipelines, "_of_devices", {})


async def test_ordinary_modules_do_where_the_library_has_no_others(gpu, monkeypatch):
    monkeypatch.setattr(wgpu_native, "_CREATE_TRUSTED", None)
    await check_add_one(gpu)


async def test_a_kernel_that_does_not_compile_rejects_build_with_its_operator_and_types(gpu, monkeypatch):
    monkeypatch.setattr(find(OPERATORS["tanh"]), "expression", lambda _node, _x: "nonsense")
    builder = MLGraphBuilder(gpu)
    x = builder.input("x", data_type="float32", shape=[4])
    with pytest.raises(OperationError, match="'tanh float32' does not compile"):
        await builder.build({"y": builder.tanh(x)})
    await build_add_one(gpu, [4])


@pytest.mark.usefixtures("_alone")
async def test_contexts_of_one_gpu_device_share_its_pipelines_until_the_last_one_ends(ml, shared_gpu, monkeypatch):
    made = noted(monkeypatch, Pipelines, "_make", lambda _self, kernel, _layout: kernel.label)
    first, second = [await ml.create_context(gpu_device=shared_gpu) for _ in range(2)]
    await build_add_one(first, [4])
    assert len(made) == 1
    first.destroy()
    await first.drain()
    graph = await build_add_one(second, [4])
    assert len(made) == 1, "compiled again, though the other context of the device had done so"
    await check_add_one(second, graph)
    second.destroy()
    await second.drain()
    await wait_all_tasks_blocked()
    await build_add_one(await ml.create_context(gpu_device=shared_gpu), [4])
    assert len(made) == 2


@pytest.fixture
def compiled(monkeypatch):
    """The compiled pipelines that are alive; compiling takes no time."""
    alive = WeakSet()

    class Pipeline:
        def __init__(self):
            alive.add(self)

    class Device:
        create_bind_group_layout = create_pipeline_layout = staticmethod(lambda **_: None)

    monkeypatch.setattr(pipelines, "engine_of", lambda _: SimpleNamespace(trusted_pipeline=lambda *_: Pipeline()))
    return SimpleNamespace(alive=alive, device=Device())


def kernel(number, length=0):
    return Kernel("a kernel", f"{number}".ljust(length), (), (), (1, 1, 1))


def compile_all(cache, kernels):
    return list(cache.finished(kernels, cache.begin(kernels), Future()))


def test_ten_thousand_kernels_leave_as_many_pipelines_as_there_is_room_for(compiled):
    room = Room(count=300, byte_length=2**30)
    cache = Pipelines(compiled.device, room)
    for number in range(10_000):
        compile_all(cache, [kernel(number)])
    assert len(compiled.alive) <= room.count + 1  # the last may still be in a worker's hands
    assert cache.statistics() == {
        "kept_pipelines": 300,
        "kept_pipeline_bytes": sum(PIPELINE_BYTES + len(str(number)) for number in range(9_700, 10_000)),
        "compiled_pipelines": 10_000,
        "dropped_pipelines": 9_700,
    }


def test_pipelines_are_kept_up_to_a_number_of_bytes(compiled):
    cache = Pipelines(compiled.device, Room(count=10_000, byte_length=5 * PIPELINE_BYTES))
    for number in range(20):
        compile_all(cache, [kernel(number, length=PIPELINE_BYTES)])
        assert cache.statistics()["kept_pipeline_bytes"] <= 5 * PIPELINE_BYTES
    assert cache.statistics()["kept_pipelines"] == 2


def test_the_pipeline_used_least_recently_goes_first(compiled):
    cache = Pipelines(compiled.device, Room(count=3, byte_length=2**30))
    compile_all(cache, [kernel(number) for number in (1, 2, 3)])
    compile_all(cache, [kernel(1)])
    compile_all(cache, [kernel(4)])
    assert cache.statistics()["compiled_pipelines"] == 4
    compile_all(cache, [kernel(1), kernel(3), kernel(4)])
    assert cache.statistics()["compiled_pipelines"] == 4
    compile_all(cache, [kernel(2)])
    assert cache.statistics()["compiled_pipelines"] == 5


@pytest.mark.parametrize("options", [{"max_cached_pipelines": 0}, {"max_cached_pipeline_bytes": 0}], ids=str)
async def test_a_graph_runs_when_no_pipelines_are_kept(ml, options):
    context = await ml.create_context(backend="wgpu", **options)
    graph = await build_add_one(context, [4])
    for _ in range(2):
        await check_add_one(context, graph)
    assert context.statistics().of_backend["kept_pipelines"] == 0
    assert context.statistics().of_backend["compiled_pipelines"] == 1
    again = await build_add_one(context, [4])
    assert context.statistics().of_backend["compiled_pipelines"] == 1, "compiled again, though a living graph had it"
    for each in (graph, again):
        each.destroy()
    await context.drain()
    gc.collect()
    await build_add_one(context, [4])
    assert context.statistics().of_backend["compiled_pipelines"] == 2
    context.destroy()


@pytest.mark.parametrize("name", ["max_cached_pipelines", "max_cached_pipeline_bytes"])
@pytest.mark.parametrize("value", [-1, 2.5, "many", True], ids=repr)
async def test_how_many_pipelines_are_kept_must_be_a_count(ml, name, value):
    with pytest.raises(TypeError, match=rf"create_context\(\): {name} is .*; it must be (an integer|from 0 to)"):
        await ml.create_context(**{name: value})
