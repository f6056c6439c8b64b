"""The configuration of onnxruntime: threads, provider, and the optimizers that are disabled."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final
from warnings import warn

import attrs
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import BackendInfo
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import nearest, shown
from webnn_py.devices.forking import Driver, keep_in_children
from webnn_py.devices.host_processor import processor
from webnn_py.devices.onnxruntime.idle_optimizers import idle
from webnn_py.devices.onnxruntime.providers import CPU, Provider, of_name
from webnn_py.onnx_export.inlined_export import InlinedModel

DISABLED: Final[Mapping[str, str]] = {
    "ConvMulFusion": "It multiplies the filter instead of the result, and the product may overflow or vanish.",
    "DivMulFusion": "It makes y / x of 1 / x · y, and 1 / x may overflow.",
    "DoubleQDQPairsRemover": "It makes one quantization of two in a row, each of which rounds.",
    "MatMulScaleFusion": "It multiplies the product instead of a factor, which may have overflowed.",
    "Pad_Fusion": "Up to 1.31 it lets the greatest element of a window of integers pass over the padding.",
}
"""The optimizers that are always disabled, by onnxruntime's names, each with what it would change."""

FUSES_TRANSPOSES: Final = "MatmulTransposeFusion"
"""The optimizer that may end the process where a Cast is between a Transpose and a MatMul, in 1.31 and 1.32."""

FUSES_INTO_GEMM: Final = "GemmTransposeFusion"
"""The optimizer that removes a Transpose of a Gemm with two of them, although the graph returns its result."""

CONFIGURATION: Final[Mapping[str, str]] = {
    "session.disable_quant_qdq": "1",  # these operators compute in integers, which round intermediates differently
}
"""Further configuration entries of every session."""


PACKAGES: Final = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino")
"""The packages that install onnxruntime itself, of which one may be installed."""

QNN: Final = "onnxruntime_qnn"
"""The package of the QNN provider."""

PLUGINS: Final = ("onnxruntime_ep_", QNN)
"""The beginnings of the names of packages that contain an execution provider."""

LEAST_CUT: Final = 2**14
"""The elements of a value from which on several threads may pay off."""


def usable_cores() -> int:
    """Return the number of cores on which the process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def register_installed() -> Mapping[str, str]:
    """Register the execution providers of installed packages, such as onnxruntime-ep-webgpu.

    Returns:
        The package of each provider, by the provider's name, for packages that say which one they have.
    """
    packages = {}
    for module in iter_modules():
        if module.name.startswith(PLUGINS):
            package = import_module(module.name)
            provider = package.get_ep_name() if hasattr(package, "get_ep_name") else ""
            # The library of QNN calls its provider what it is registered as.
            name = provider if module.name == QNN else module.name
            try:
                onnxruntime.register_execution_provider_library(name, package.get_library_path())
                if provider:
                    packages[provider] = module.name
            except (Fail, InvalidArgument, OSError, RuntimeError) as error:
                warn(f"{module.name} cannot be used: {error}", RuntimeWarning, stacklevel=2)
    return packages


def names() -> Sequence[str]:
    """Return the execution providers of the installed onnxruntime and of registered libraries, the CPU's first."""
    register_installed()
    there: list[str] = onnxruntime.get_available_providers()
    there += [device.ep_name for device in onnxruntime.get_ep_devices()]
    return sorted(dict.fromkeys(there), key=lambda name: name != CPU.name)


def find(name: str) -> Provider:
    """Return the execution provider of a name.

    Raises:
        NotSupportedError: onnxruntime has none of this name here.
    """
    if name == CPU.name:
        return CPU
    there = names()
    package = register_installed().get(name)
    if name not in there and package is not None:
        raise NotSupportedError(
            f"execution_provider is {shown(name)}; the package {package} has it, but finds no device for it here"
        )
    if name not in there:
        raise NotSupportedError(
            f"execution_provider is {shown(name)}; the installed onnxruntime has {', '.join(there)}"
            f"{nearest(name, there)}{_conflict()}"
        )
    return of_name(name)


@cache
def driver(provider: Provider) -> Driver:
    """Return the driver of a provider that does not run on the CPU."""
    return Driver(provider.name)


def _conflict() -> str:
    """Return a warning where two packages of onnxruntime are installed: the one that came last replaced the other."""
    from importlib.metadata import distributions  # noqa: PLC0415 - slow

    there = sorted({item.name for item in distributions() if item.name in PACKAGES})
    if len(there) < 2:
        return ""
    return f"; {' and '.join(there)} replace each other's files: uninstall both and install one"


def describe(provider: Provider) -> BackendInfo:
    """Return the description of a context on a provider."""
    untested = "" if provider.is_tested else ", not tested"
    driver = f"onnxruntime {onnxruntime.__version__}, {provider.name}{untested}"
    # What a provider does not run, onnxruntime's own kernels do.
    kinds = tuple(dict.fromkeys((provider.device_type, CPU.device_type)))
    return BackendInfo("onnxruntime", processor(), driver, device_types=kinds)


def left_out(model: InlinedModel) -> set[str]:
    """Return the optimizers that are disabled for a model.

    Optimizers that run earlier move and remove nodes. So it is not enough that no Cast is adjacent yet, and an Identity
    that makes an output may be removed.
    """
    there = model.operators
    names = idle(there) | DISABLED.keys()
    if there >= {"Transpose", "Cast", "MatMul"}:
        names.add(FUSES_TRANSPOSES)
    if there >= {"Transpose", "Gemm"} and not model.makers.isdisjoint({"Transpose", "Identity"}):
        names.add(FUSES_INTO_GEMM)
    return names


@attrs.frozen
class EngineOptions:
    """The options that a context passes to onnxruntime.

    Attributes:
        threads: the number of threads that compute one dispatch; None for as many as the process may use cores, or one
            where no value of the graph is large enough to be divided among them.
        spinning: whether threads wait for each other without sleeping, which is faster on an idle machine only.
        deterministic: whether every run gives the same bits, where that takes longer.
        provider: the execution provider of onnxruntime that runs the operators that it supports.
        provider_options: the options that are passed to it, in addition to its own defaults.
        keep_subnormals: whether subnormal numbers in constants stay.
    """

    threads: int | None = None
    spinning: bool = False
    deterministic: bool = False
    provider: Provider = CPU
    provider_options: Mapping[str, str] = attrs.field(factory=dict)
    keep_subnormals: bool = False

    def session(
        self, model: InlinedModel, values: Iterable[MLOperandDescriptor], **more: str
    ) -> onnxruntime.InferenceSession:
        """Make a session that runs a model.

        Args:
            model: the model; the memory of its external constants must outlive the session.
            values: the descriptors of all values in it.
            more: further options of the provider.
        """
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # failures are raised
        # Each session has its own threads: a global pool would affect all other sessions of the process.
        options.intra_op_num_threads = _threads(values) if self.threads is None else self.threads
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = self.deterministic
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spinning)))
        for name, value in (*CONFIGURATION.items(), *self.provider.configuration.items()):
            options.add_session_config_entry(name, value)
        if model.beside:
            tensors = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, model.beside.values())]
            options.add_external_initializers(list(model.beside), tensors)
        session = onnxruntime.InferenceSession(
            model.encoded,
            options,
            disabled_optimizers=left_out(model),
            **self.chosen(options, more),
        )
        if self.provider.name not in session.get_providers():  # it prints why, and falls back to the CPU
            raise RuntimeError(
                f"onnxruntime cannot use {self.provider.name} here; it would run the graph on the CPU instead"
            )
        keep_in_children(session._sess)
        return session

    def chosen(self, options: onnxruntime.SessionOptions, more: Mapping[str, str]) -> dict[str, Any]:
        """Choose the provider: of a registered library by its devices, otherwise by its name."""
        given = {**self.provider.options, **self.provider_options, **more}
        if self.provider is not CPU:
            devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == self.provider.name]
            if devices:
                options.add_provider_for_devices(devices[:1], given)
                return {}
        names = dict.fromkeys((self.provider.name, CPU.name))
        return {"providers": [(name, given) if given and name == self.provider.name else name for name in names]}


def _threads(values: Iterable[MLOperandDescriptor]) -> int:
    """Return the number of threads that pays off for the computation of some values."""
    return usable_cores() if any(value.element_count >= LEAST_CUT for value in values) else 1
