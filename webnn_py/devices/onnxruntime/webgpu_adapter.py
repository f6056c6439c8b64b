"""The GPU that onnxruntime's WebGPU provider chooses: whether it has float16, which only a run shows."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import attrs
import numpy as np
from onnxruntime.capi.onnxruntime_pybind11_state import EPFail, Fail

from webnn_py.core.descriptors import DATA_TYPES, MLOperandDataType, MLOperandDescriptor
from webnn_py.core.device.backend import Capabilities
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.graph import Graph, Input
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.message_text import device_text
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.onnxruntime.engine import EngineOptions
from webnn_py.devices.onnxruntime.providers import Provider
from webnn_py.devices.rewriting.passes import PassContext, PassManager
from webnn_py.onnx_export.inlined_export import InlinedExport

MISSING: Final = "requires f16"
"""A part of what onnxruntime reports where a kernel of float16 is compiled for a GPU without it."""

_lacking: dict[tuple[tuple[str, str], ...], bool] = {}
"""Whether the GPU lacks float16, by the options of the provider."""


def capabilities_on(options: EngineOptions) -> Capabilities:
    """Return what the provider computes on its GPU.

    Raises:
        NotSupportedError: there is no such GPU.
    """
    key = tuple(sorted(options.provider_options.items()))
    if key not in _lacking:
        _lacking[key] = _lacks_float16(options)
    return _without_float16(options.provider) if _lacking[key] else options.provider.capabilities


def _lacks_float16(options: EngineOptions) -> bool:
    """Run a cast to float16; return whether the GPU refuses it."""
    x, builder = Input(MLOperandDescriptor("float32", (1,)), "x"), RewriteBuilder("", ())
    graph = Graph.reaching({"y": builder.value(builder.cast(builder.operand(x), "float16"))})
    context = PassContext(target=options.provider.name)
    model = InlinedExport(graph, context, options.provider.write, PassManager(), options.provider.float16).model()
    try:
        session = options.session(model, graph.descriptors)
        session.run(None, {model.inputs["x"]: np.zeros(1, np.float32)})
    except (EPFail, Fail, RuntimeError) as error:
        if MISSING in str(error):
            return True
        raise NotSupportedError(f"{options.provider.name} cannot be used: {device_text(error)}") from error
    return False


@cache
def _without_float16(provider: Provider) -> Capabilities:
    """One object for all contexts: limits are kept for each."""
    data_types = tuple(name for name in DATA_TYPES if name != "float16")

    def supports(operator: Operator[..., Any]) -> tuple[MLOperandDataType, ...]:
        return data_types if provider.capabilities.supports(operator) else ()

    return attrs.evolve(provider.capabilities, supports=supports, data_types=data_types)
