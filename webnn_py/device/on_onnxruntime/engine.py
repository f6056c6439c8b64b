"""How onnxruntime is told what to do: threads, provider, and which of its optimizers are left out."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
import onnxruntime

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.backend import BackendInfo, MLDeviceType
from webnn_py.device.on_onnxruntime.idle_optimizers import idle
from webnn_py.device.processor import processor
from webnn_py.errors import NotSupportedError
from webnn_py.message_text import nearest, shown
from webnn_py.onnx_export.inlined_export import InlinedModel

TESTED_PROVIDER: Final = "CPUExecutionProvider"
"""The one that this package's tests run on, and that runs what another one cannot."""

DISABLED: Final[Mapping[str, str]] = {
    "ConvMulFusion": "It multiplies the filter instead of the result, and the product may overflow or vanish.",
    "DivMulFusion": "It makes y / x of 1 / x · y, and 1 / x may overflow.",
    "DoubleQDQPairsRemover": "It makes one quantization of two in a row, each of which rounds.",
    "MatMulScaleFusion": "It multiplies the product instead of a factor, which may have overflowed.",
    "Pad_Fusion": "Up to 1.31 it lets the greatest element of a window of integers pass over the padding.",
}
"""The optimizers of onnxruntime that are left out, by the names that it has for them, each with what it changes."""

FUSES_TRANSPOSES: Final = "MatmulTransposeFusion"
"""The optimizer that may end the process where a Cast lies between a Transpose and a MatMul, in 1.31 and 1.32."""

FUSES_INTO_GEMM: Final = "GemmTransposeFusion"
"""The optimizer that removes a Transpose of a Gemm which has two, although the graph returns the one."""

CONFIGURATION: Final[Mapping[str, str]] = {
    "session.disable_quant_qdq": "1",  # they compute in integers, which round what is between otherwise
}
"""What else every session is told."""


LEAST_CUT: Final = 2**14
"""Elements of a value from which on several threads may be worth their while."""


DEVICE_TYPES: Final[Mapping[str, MLDeviceType]] = {
    "CUDAExecutionProvider": "gpu",
    "DmlExecutionProvider": "gpu",
    "MIGraphXExecutionProvider": "gpu",
    "QNNExecutionProvider": "npu",
    "ROCMExecutionProvider": "gpu",
    "TensorrtExecutionProvider": "gpu",
    "WebGpuExecutionProvider": "gpu",
}
"""What the execution providers that are none of the processor's compute on."""


def usable_cores() -> int:
    """On how many cores the process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def providers() -> Sequence[str]:
    """The execution providers that the installed onnxruntime has, the one that is tested first."""
    there: list[str] = onnxruntime.get_available_providers()
    return sorted(there, key=lambda name: name != TESTED_PROVIDER)


def describe(provider: str) -> BackendInfo:
    """Where a context on a provider runs."""
    untested = "" if provider == TESTED_PROVIDER else ", not tested"
    driver = f"onnxruntime {onnxruntime.__version__}, {provider}{untested}"
    # What a provider does not run, onnxruntime's own kernels do.
    kinds = tuple(dict.fromkeys((DEVICE_TYPES.get(provider, "cpu"), "cpu")))
    return BackendInfo("onnxruntime", processor(), driver, device_types=kinds)


def left_out(model: InlinedModel) -> set[str]:
    """The optimizers that are left out for a model.

    Other optimizers move and remove nodes before: that a Cast is no neighbour yet tells nothing, and an Identity that
    makes an output may be removed.
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
    """What a context asks of onnxruntime.

    Attributes:
        threads: how many threads compute one dispatch; None for as many as the process may use cores, or one where the
            graph has no value that is large enough to be cut for them.
        spinning: whether they wait for each other awake, which is faster on an idle machine only.
        deterministic: whether every run gives the same bits, where that takes longer.
        provider: which of onnxruntime's execution providers runs what it can.
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
        """A session that runs a model.

        Args:
            model: the model; the memory of the constants that lie beside it must outlive the session.
            values: all that there are in it.
        """
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what goes wrong is raised
        # Each session has its own. One pool for all would be the whole process's, whose other sessions it would break.
        options.intra_op_num_threads = _threads(values) if self.threads is None else self.threads
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = self.deterministic
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spinning)))
        for name, value in CONFIGURATION.items():
            options.add_session_config_entry(name, value)
        if model.beside:
            tensors = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, model.beside.values())]
            options.add_external_initializers(list(model.beside), tensors)
        session = onnxruntime.InferenceSession(
            model.encoded,
            options,
            providers=list(dict.fromkeys((self.provider, TESTED_PROVIDER))),
            disabled_optimizers=left_out(model),
        )
        if self.provider not in session.get_providers():  # it prints why, and falls back to the CPU
            raise RuntimeError(
                f"onnxruntime cannot use {self.provider} here; it would run the graph on the CPU instead"
            )
        return session


def _threads(values: Iterable[MLOperandDescriptor]) -> int:
    """How many threads are worth their while for what computes these."""
    return usable_cores() if any(value.element_count >= LEAST_CUT for value in values) else 1
