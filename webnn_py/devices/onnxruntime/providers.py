"""onnxruntime's execution providers: how graphs are written for each, and where its buffers are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from webnn_py.core.device.backend import Capabilities, MLDeviceType
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION
from webnn_py.devices.onnxruntime.claimed_operators import CAPABILITIES, ELSEWHERE, claims_without
from webnn_py.devices.onnxruntime.lowering import cuda_rules, webgpu_rules
from webnn_py.devices.onnxruntime.lowering.rules import FLOAT16, RULES
from webnn_py.onnx_export import writing
from webnn_py.onnx_export.body import Float16Kernels, Write
from webnn_py.onnx_export.table import Rule


@attrs.frozen(eq=False)
class Provider:
    """An execution provider of onnxruntime.

    Attributes:
        name: onnxruntime's name of it.
        device_type: the kind of processor that does most of its work.
        options: the options that sessions pass to it unless the user gives others.
        configuration: further configuration entries of its sessions.
        capabilities: what it computes without decomposing it.
        rules: how operators are written for it, right for all numbers, by Python name.
        float16: the ONNX operators with kernels of float16.
        has_guards: whether graphs are run first by fast rules with guards, see ``lowering.guarded_rules``.
        checks_indices: whether a Gather with an index out of range makes a run fail.
        memory: where buffers are: in the host's memory, or in that of a GPU.
        may_lack_float16: whether it depends on the GPU that there is float16.
        copies_inputs: whether sessions read copies of inputs, which onnxruntime makes when an input is bound.
        writes_in_place: whether an output may be in the memory of the input that it updates.
        is_tested: whether this package's tests run on it.
    """

    name: str
    device_type: MLDeviceType = "cpu"
    options: Mapping[str, str] = attrs.field(factory=dict)
    configuration: Mapping[str, str] = attrs.field(factory=dict)
    capabilities: Capabilities = CAPABILITIES
    rules: Mapping[str, Rule] = RULES
    float16: Float16Kernels = FLOAT16
    has_guards: bool = True
    checks_indices: bool = False
    memory: Literal["host", "cuda"] = "host"
    may_lack_float16: bool = False
    copies_inputs: bool = True
    writes_in_place: bool = False
    is_tested: bool = False
    write: Write = attrs.field(init=False)

    @write.default
    def _default_write(self) -> Write:
        return writing.by(self.rules)


CPU: Final = Provider(
    "CPUExecutionProvider",
    writes_in_place=True,
    checks_indices=True,
    copies_inputs=False,
    is_tested=True,
)
"""The provider that contexts use by default, and the fallback for operators that another provider lacks."""

CUDA: Final = Provider(
    "CUDAExecutionProvider",
    "gpu",
    options={"use_tf32": "0"},  # which rounds the factors of products to 10 bits
    configuration={"session.record_ep_graph_assignment_info": "1"},
    capabilities=Capabilities(claims_without(cuda_rules.DECOMPOSED, (*ELSEWHERE, GROUP_QUERY_ATTENTION))),
    writes_in_place=True,
    rules=cuda_rules.RULES,
    float16=cuda_rules.FLOAT16,
    has_guards=False,
    memory="cuda",
    copies_inputs=False,
    is_tested=True,
)

WEBGPU: Final = Provider(
    "WebGpuExecutionProvider",
    "gpu",
    capabilities=Capabilities(claims_without(webgpu_rules.DECOMPOSED, ELSEWHERE)),
    rules=webgpu_rules.RULES,
    float16=webgpu_rules.FLOAT16,
    has_guards=False,
    may_lack_float16=True,
    is_tested=True,
)

PROVIDERS: Final[Mapping[str, Provider]] = {
    provider.name: provider
    for provider in (
        CPU,
        CUDA,
        WEBGPU,
        Provider("DmlExecutionProvider", "gpu"),
        Provider("MIGraphXExecutionProvider", "gpu"),
        Provider("QNNExecutionProvider", "npu"),
        Provider("TensorrtExecutionProvider", "gpu"),
    )
}
"""The providers of which something is known, by onnxruntime's names."""


def of_name(name: str) -> Provider:
    """Return the provider of a name; nothing is known of most."""
    return PROVIDERS.get(name) or Provider(name)
