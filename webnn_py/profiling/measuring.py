"""Measurements of a graph's kernels, and of the rates at which a device copies and multiplies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Final
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, KernelTiming, Storage, TimesKernels
from webnn_py.core.device.device import Device, GraphHandle
from webnn_py.core.graph import Graph, Input, Node, Value
from webnn_py.core.in_flight import done
from webnn_py.core.operators import activation, matrix, unary
from webnn_py.devices.long_steps import check_goes_on, give_way
from webnn_py.profiling.temporary import Descriptors, compiled, descriptor_of, storages

SHORT_SECONDS: Final = 0.005
"""Shorter measurements are repeated with more work, since clocks and caches distort them."""

COPY_BYTES: Final = (2**23, 2**25, 2**27)
"""The sizes of the buffers that are copied to measure how fast a device copies."""

PRODUCT_SIZES: Final = (256, 512, 1024, 2048, 4096)
"""The sizes of the square matrices that are multiplied to measure how fast a device multiplies."""

CHAIN: Final = 32
CHAIN_SHAPE: Final = (2048, 512)
"""The shape of the matrix of a chain of ``CHAIN`` softmaxes that measures the overhead of timing a kernel."""

FAST_COPY: Final = 1e11
"""In bytes per second: on devices that copy slower, kernels are so long that the overhead of timing is negligible."""

ROW_SECONDS: Final = 0.02
"""The length of a row of dispatches without waits that measures the duration of one of them."""

STEADY_SHARE: Final = 0.03
"""The most by which two such rows differ on a steady device."""

WARMING_SECONDS: Final = 0.5
MOST_WARMING_SECONDS: Final = 1.5
"""The seconds of the warm-up: the least, and the most until the device must be steady."""

BEST_OF: Final = 5
BEST_OF_SECONDS: Final = 0.02
"""The least number of runs of a kernel, and the least seconds: the shortest time is the least disturbed one."""


@attrs.frozen
class DeviceRates:
    """The rates at which a device copies and multiplies, measured with its own kernels.

    Attributes:
        data_type: the data type that is copied and multiplied.
        copied_bytes_per_second: bytes read and bytes written, both counted, by a kernel that copies a large buffer.
        multiplied_flops_per_second: multiplications and additions, both counted, in a product of large matrices.
        timing_seconds: the overhead of timing a kernel by a GPU's clock, which begins a pass for it.
    """

    __module__ = "webnn_py"  # where it is public

    data_type: MLOperandDataType
    copied_bytes_per_second: float
    multiplied_flops_per_second: float
    timing_seconds: float = 0.0


@attrs.frozen
class MeasuredRun:
    """One dispatch with timings: its duration by the host's clock, and the timings of its kernels."""

    seconds: float
    kernels: Sequence[KernelTiming]

    @property
    def device_seconds(self) -> float:
        """The time from the start of the first kernel to the end of the last, by the clock that timed them."""
        if not self.kernels:
            return 0.0
        return (self.kernels[-1].start_ns + self.kernels[-1].duration_ns - self.kernels[0].start_ns) / 1e9


@attrs.frozen
class Measurement:
    """The measurements of a graph.

    Attributes:
        runs: dispatches with timings.
        plain_seconds: the durations of the same dispatches without timings, each until the device had finished.
        row_seconds: the durations of one of several dispatches in a row without waits.
        rates: the rates of the device.
    """

    runs: Sequence[MeasuredRun]
    plain_seconds: Sequence[float]
    row_seconds: Sequence[float]
    rates: DeviceRates


@attrs.frozen
class Dispatches:
    """A graph that is dispatched repeatedly, with the same memory.

    Attributes:
        device: the device, whose backend times kernels.
        handle: the graph.
        inputs: the memory that it reads.
        outputs: the memory that it writes.
    """

    device: Device
    handle: GraphHandle
    inputs: Mapping[str, Storage]
    outputs: Mapping[str, Storage]

    async def in_a_row(self, count: int) -> float:
        """Return the seconds of one of ``count`` dispatches that are enqueued in a row."""
        backend = self.device.backend
        await give_way(self.device)
        await done(backend.finish())
        since = perf_counter()
        for _ in range(count):
            check_goes_on(self.device)
            await done(backend.dispatch(self.handle.compiled, self.inputs, self.outputs))
        await done(backend.finish())
        return (perf_counter() - since) / count

    async def timed(self) -> MeasuredRun:
        """Run one dispatch with timings."""
        backend = self.device.backend
        assert isinstance(backend, TimesKernels)  # noqa: S101 - the script checks it before
        await give_way(self.device)
        since = perf_counter()
        timings = await done(backend.dispatch_timed(self.handle.compiled, self.inputs, self.outputs))
        return MeasuredRun(perf_counter() - since, timings)

    async def warm_up(self, least_seconds: float) -> int:
        """Dispatch until the device is steady, for at least the given time.

        An idle GPU is five times slower than it can be, and stays so for a quarter of a second after it gets work.

        Returns:
            The number of dispatches in a row that take long enough to be timed.
        """
        count, before, since = 1, 0.0, perf_counter()
        while True:
            seconds = await self.in_a_row(count)
            spent = perf_counter() - since
            is_steady = abs(seconds - before) <= STEADY_SHARE * before
            if seconds * count < ROW_SECONDS:
                count *= 2
            elif spent >= MOST_WARMING_SECONDS or (is_steady and spent >= least_seconds):
                return count
            before = seconds


async def measure(
    device: Device, handle: GraphHandle, given: Mapping[str, HostArray], made: Descriptors, repeat: int
) -> Measurement:
    """Dispatch a graph ``repeat`` times with timings and ``repeat`` times without, on a warm device.

    Args:
        device: the device, whose backend times kernels.
        handle: the graph.
        given: the inputs.
        made: the descriptors of the outputs.
        repeat: the number of dispatches of each kind.
    """
    runs, plain, rows = [], [], []
    async with storages(device, given, made) as (inputs, outputs):
        dispatches = Dispatches(device, handle, inputs, outputs)
        await dispatches.warm_up(WARMING_SECONDS)
        data_type = _data_type([*(descriptor_of(array) for array in given.values()), *made.values()])
        rates = await measure_rates(device, data_type)
        count = await dispatches.warm_up(0.0)
        for _ in range(repeat + 1):  # alternating, so that all are measured in the same state of the device
            plain.append(await dispatches.in_a_row(1))
            rows.append(await dispatches.in_a_row(count) if count > 1 else plain[-1])
            runs.append(await dispatches.timed())
    return Measurement(runs[1:], plain[1:], rows[1:], rates)


_RATES: Final[WeakKeyDictionary[Device, dict[MLOperandDataType, DeviceRates]]] = WeakKeyDictionary()


def rates_of(device: Device) -> dict[MLOperandDataType, DeviceRates]:
    """Return the rates of a device that are known, by data type."""
    return _RATES.setdefault(device, {})


async def measure_rates(device: Device, data_type: MLOperandDataType) -> DeviceRates:
    """Return the rates of a device; they are measured once."""
    known = rates_of(device)
    if data_type not in known:
        copied = multiplied = 0.0
        for byte_length in COPY_BYTES:
            seconds, moved = await _time_copy(device, data_type, byte_length)
            copied = max(copied, moved / seconds)
            if seconds > SHORT_SECONDS:
                break
        for size in PRODUCT_SIZES:
            seconds = await _time_product(device, data_type, size)
            multiplied = max(multiplied, 2 * size**3 / seconds)
            if seconds > SHORT_SECONDS:
                break
        timing = await time_timing(device) if copied > FAST_COPY else 0.0
        known[data_type] = DeviceRates(data_type, copied, multiplied, timing)
    return known[data_type]


async def time_timing(device: Device) -> float:
    """Return the overhead of timing a kernel: the kernels of a chain, timed, less a dispatch of it in a row."""
    descriptor = MLOperandDescriptor("float32", CHAIN_SHAPE)
    value: Value = Input(descriptor, "x")
    for _ in range(CHAIN):
        (value,) = Node(activation.softmax, {"input": value}, {"axis": 1}, (descriptor,)).results
    given = {"x": np.ones(CHAIN_SHAPE, np.float32)}
    async with (
        compiled(device, Graph.reaching({"y": value})) as handle,
        storages(device, given, {"y": descriptor}) as (inputs, outputs),
    ):
        dispatches = Dispatches(device, handle, inputs, outputs)
        count = await dispatches.warm_up(0.0)
        rows = [await dispatches.in_a_row(count) for _ in range(BEST_OF)]
        runs = [await dispatches.timed() for _ in range(BEST_OF)]
    if any(timing.clock != "gpu" for timing in runs[0].kernels):
        return 0.0
    kernels = min(sum(timing.duration_ns for timing in run.kernels) for run in runs) / 1e9
    return max(0.0, kernels - min(rows)) / CHAIN


async def _time_copy(device: Device, data_type: MLOperandDataType, byte_length: int) -> tuple[float, int]:
    descriptor = MLOperandDescriptor(data_type, (byte_length // np.dtype(data_type).itemsize,))
    source = Input(descriptor, "source")
    (copy,) = Node(unary.identity, {"input": source}, {}, (descriptor,)).results
    seconds = await _time_kernels(device, {"copy": copy}, {"source": np.ones(descriptor.shape, data_type)})
    return seconds, 2 * byte_length


async def _time_product(device: Device, data_type: MLOperandDataType, size: int) -> float:
    descriptor = MLOperandDescriptor(data_type, (size, size))
    operands = {name: Input(descriptor, name) for name in ("a", "b")}
    (product,) = Node(matrix.matmul, operands, {}, (descriptor,)).results
    numbers = np.random.default_rng(0).uniform(-1, 1, (size, size)).astype(data_type)
    return await _time_kernels(device, {"product": product}, {"a": numbers, "b": numbers})


async def _time_kernels(device: Device, outputs: Mapping[str, Value], given: Mapping[str, HostArray]) -> float:
    """Return the shortest total time of a graph's kernels."""
    backend = device.backend
    assert isinstance(backend, TimesKernels)  # noqa: S101 - the script checks it before
    async with compiled(device, Graph.reaching(outputs)) as handle:
        made = {name: value.descriptor for name, value in outputs.items()}
        async with storages(device, given, made) as (inputs, targets):
            times: list[int] = []
            until = perf_counter() + BEST_OF_SECONDS
            while len(times) <= BEST_OF or perf_counter() < until:
                await give_way(device)
                timings = await done(backend.dispatch_timed(handle.compiled, inputs, targets))
                times.append(sum(timing.duration_ns for timing in timings))
    return max(min(times[1:]), 1) / 1e9


def _data_type(descriptors: Sequence[MLOperandDescriptor]) -> MLOperandDataType:
    """Return the data type to measure with: float16 for a graph whose floats are all float16."""
    floats = {item.data_type for item in descriptors} & {"float16", "float32"}
    return "float16" if floats == {"float16"} else "float32"
