"""The onnxruntime device's entry in the registry; onnxruntime loads when a context is opened on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import attrs
import trio

from webnn_py.core.descriptors import unsigned_long
from webnn_py.core.device.backend import Backend, BackendInfo, Capabilities
from webnn_py.core.device.registry import DeviceOption, DeviceRecord, OpenRequest, Suitability
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import shown
from webnn_py.core.operators.idl import boolean
from webnn_py.devices.onnxruntime.claimed_operators import CAPABILITIES
from webnn_py.devices.processor_options import KEEP_SUBNORMALS
from webnn_py.extras import install_command

if TYPE_CHECKING:
    from webnn_py.devices.onnxruntime.providers import Provider

NEEDED: Final = ("onnxruntime", "onnx")
"""The packages of the extra: the engine, and the library that writes models."""

MOST_THREADS: Final = 1024

DEFAULT_PROVIDER = "CPUExecutionProvider"
"""The execution provider of contexts that name none."""


@contextmanager
def _reporting_missing_packages(extra: str = "onnxruntime") -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        how = install_command(extra)
        raise NotSupportedError(f"onnxruntime cannot be loaded: {error}; {how}") from error


def _opened(request: OpenRequest) -> Backend:
    with _reporting_missing_packages():
        from webnn_py.devices.onnxruntime import backend, engine  # noqa: PLC0415 - an extra
    given = request.options
    options = engine.EngineOptions(
        threads=given["threads"],
        spinning=given["spinning"],
        deterministic=given["deterministic_compute"],
        provider=engine.find(DEFAULT_PROVIDER if given["execution_provider"] is None else given["execution_provider"]),
        provider_options=given["provider_options"],
        keep_subnormals=given["keep_subnormals"],
    )
    if options.provider.name == DEFAULT_PROVIDER and options.provider_options:
        raise TypeError(
            f"provider_options is {shown(options.provider_options)}; {DEFAULT_PROVIDER} has no options of its "
            "own; the context's are deterministic_compute, spinning and threads"
        )
    if options.provider.device_type != "cpu":
        engine.driver(options.provider).enter()
    if options.provider.memory == "cuda":
        with _reporting_missing_packages("onnxruntime-gpu"):
            from webnn_py.devices.onnxruntime.cuda_backend import CudaBackend  # noqa: PLC0415 - an extra
        return CudaBackend(options)
    return backend.OnnxruntimeBackend(options)


async def _open(request: OpenRequest) -> Backend:
    return await trio.to_thread.run_sync(_opened, request)  # which loads onnxruntime


def _probe(_power_preference: str) -> Suitability:
    return Suitability.ENGINE if all(map(find_spec, NEEDED)) else Suitability.ABSENT


def _thread_count(value: object) -> int:
    count = unsigned_long(value, 1, MOST_THREADS)
    if not 1 <= count <= MOST_THREADS:
        raise TypeError(f"is {count}; it must be from 1 to {MOST_THREADS}")
    return count


def _provider_name(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise TypeError(f"is {shown(value)}; it must be the name of one of onnxruntime's execution providers")


def _provider_options(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise TypeError(f"is {shown(value)}; it must be a mapping of the provider's options by name")
    options = {}
    for name, option in value.items():
        if not isinstance(option, str | int | float):
            raise TypeError(f"[{shown(name)}] is {shown(option)}; it must be a string, a number or a boolean")
        options[name] = str(int(option)) if isinstance(option, bool) else str(option)
    return options


def _adapters() -> Sequence[BackendInfo]:
    with _reporting_missing_packages():
        from webnn_py.devices.onnxruntime import engine  # noqa: PLC0415 - an extra
    return [_described(engine.find(name)) for name in engine.names()]


def _described(provider: Provider) -> BackendInfo:
    """Return the description of a provider; with the name of the GPU, where there is one and CUDA can be asked."""
    from webnn_py.devices.onnxruntime import engine  # noqa: PLC0415 - an extra

    info = engine.describe(provider)
    if provider.memory == "cuda":
        with suppress(ImportError, RuntimeError):  # CudaError is a RuntimeError
            from webnn_py.devices.onnxruntime import cuda_memory  # noqa: PLC0415 - an extra

            return attrs.evolve(info, adapter=cuda_memory.adapter_name(0))
    return info


def _capabilities() -> Capabilities:
    return CAPABILITIES


RECORD: Final = DeviceRecord(
    name="onnxruntime",
    title="onnxruntime",
    is_accelerated=False,
    probe=_probe,
    open=_open,
    adapters=_adapters,
    capabilities=_capabilities,
    options=(
        DeviceOption(
            "threads",
            "how many threads compute one dispatch; by default as many as the process may use cores, and one for "
            "graphs of small values only",
            convert=_thread_count,
        ),
        DeviceOption(
            "spinning",
            "whether threads wait for each other without sleeping, which is faster where nothing else runs, and slower "
            "where something does",
            default=False,
            convert=boolean,
        ),
        DeviceOption(
            "deterministic_compute",
            "whether every run of a graph gives the same bits, also where that takes longer",
            default=False,
            convert=boolean,
        ),
        KEEP_SUBNORMALS,
        DeviceOption(
            "execution_provider",
            "which of onnxruntime's execution providers runs what it can, by its name there; "
            "``CPUExecutionProvider``, the default, ``CUDAExecutionProvider`` and "
            "``WebGpuExecutionProvider`` are tested",
            convert=_provider_name,
        ),
        DeviceOption(
            "provider_options",
            "the provider's own options, as onnxruntime documents them, by name; numbers and booleans as strings, or "
            "as they are",
            default={},
            convert=_provider_options,
        ),
    ),
)
