"""The configuration of onnxruntime: threads, provider, and the optimizers that are disabled."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
import onnxruntime

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.backend import BackendInfo, MLDeviceType
from webnn_py.device.host_processor import processor
from webnn_py.device.on_onnxruntime.idle_optimizers import CHANGED_BY_NONE, idle
from webnn_py.errors import NotSupportedError
from webnn_py.message_text import nearest, shown
from webnn_py.onnx_export.inlined_export import InlinedModel

TESTED_PROVIDER: Final = "CPUExecutionProvider"
"""The provider that this package's tests run on, and the fallback for operators that another provider lacks."""

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


LEAST_CUT: Final = 2**14
"""The elements of a value from which on several threads may pay off."""


DEVICE_TYPES: Final[Mapping[str, MLDeviceType]] = {
    "CUDAExecutionProvider": "gpu",
    "DmlExecutionProvider": "gpu",
    "MIGraphXExecutionProvider": "gpu",
    "QNNExecutionProvider": "npu",
    "ROCMExecutionProvider": "gpu",
    "TensorrtExecutionProvider": "gpu",
    "WebGpuExecutionProvider": "gpu",
}
"""The device types of execution providers that do not run on the processor."""


def usable_cores() -> int:
    """Return the number of cores on which the process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def providers() -> Sequence[str]:
    """Return the execution providers of the installed onnxruntime, the tested one first."""
    there: list[str] = onnxruntime.get_available_providers()
    return sorted(there, key=lambda name: name != TESTED_PROVIDER)


def describe(provider: str) -> BackendInfo:
    """Return the description of a context on a provider."""
    untested = "" if provider == TESTED_PROVIDER else ", not tested"
    driver = f"onnxruntime {onnxruntime.__version__}, {provider}{untested}"
    # What a provider does not run, onnxruntime's own kernels do.
    kinds = tuple(dict.fromkeys((DEVICE_TYPES.get(provider, "cpu"), "cpu")))
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
    """

    threads: int | None = None
    spinning: bool = False
    deterministic: bool = False
    provider: str = TESTED_PROVIDER

    def __attrs_post_init__(self) -> None:
        if self.provider not in providers():
            raise NotSupportedError(
                f"execution_provider is {shown(self.provider)}; the installed onnxruntime has {', '.join(providers())}"
                f"{nearest(self.provider, providers())}"
            )

    def session(self, model: InlinedModel, values: Iterable[MLOperandDescriptor]) -> onnxruntime.InferenceSession:
        """Make a session that runs a model.

        Args:
            model: the model; the memory of its external constants must outlive the session.
            values: the descriptors of all values in it.
        """
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # failures are raised
        # Each session has its own threads: a global pool would affect all other sessions of the process.
        options.intra_op_num_threads = _threads(values) if self.threads is None else self.threads
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = self.deterministic
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spinning)))
        for name, value in CONFIGURATION.items():
            options.add_session_config_entry(name, value)
        if model.beside:
            tensors = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, model.beside.values())]
            options.add_external_initializers(list(model.beside), tensors)
        is_left_alone = model.operators <= CHANGED_BY_NONE
        if is_left_alone:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            model.encoded,
            options,
            providers=list(dict.fromkeys((self.provider, TESTED_PROVIDER))),
            disabled_optimizers=set() if is_left_alone else left_out(model),
        )
        if self.provider not in session.get_providers():  # it prints why, and falls back to the CPU
            raise RuntimeError(
                f"onnxruntime cannot use {self.provider} here; it would run the graph on the CPU instead"
            )
        return session


def _threads(values: Iterable[MLOperandDescriptor]) -> int:
    """Return the number of threads that pays off for the computation of some values."""
    return usable_cores() if any(value.element_count >= LEAST_CUT for value in values) else 1
