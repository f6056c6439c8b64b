"""The W3C Web Neural Network API in Python, on two explicit timelines.

The rings, each of which knows those below it and nothing of those above::

    command, javascript, testing      programs: the command, navigator.ml in Node, every order of a program's steps
    runtime, onnx_models              users of the API: sessions and generation, ONNX files (extra: onnx)
    tracing, pictures, profiling, checking, saved_graphs, web_export, webnn_files, extensions
                                      tools and extensions: observers, functions of a graph, hooks of the API
    devices, onnx_export              numpy, WebGPU and onnxruntime, and what they share
    core                              the API, its timelines, graphs, operators, what a device is, the reference device

Begin with :func:`open_ml`.
"""

import typing

from webnn_py import devices as devices  # it adds them
from webnn_py import extensions as _extensions
from webnn_py import operator_documentation as _operator_documentation
from webnn_py.core.api.buffer import MLBuffer, MLTensor
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.ml import ML, open_ml
from webnn_py.core.api.records import ContextStatistics, MLContextLostInfo, MLPowerPreference
from webnn_py.core.descriptors import MLBufferDescriptor, MLOperandDataType, MLOperandDataTypeLike, MLOperandDescriptor
from webnn_py.core.device.backend import BackendInfo
from webnn_py.core.errors import (
    DestroyedBufferError,
    DOMException,
    InvalidStateError,
    NotSupportedError,
    OperationError,
    SecurityError,
    UnknownError,
)
from webnn_py.core.extension import Extension
from webnn_py.core.observer import Observer
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.timelines.promise import MLPromise, PromiseState
from webnn_py.core.timelines.timeline import TimelineStatistics
from webnn_py.errors import NotFoundError, QuotaExceededError
from webnn_py.version import __version__ as __version__

if typing.TYPE_CHECKING:
    from webnn_py.checking import NonFinite, ValueRange
    from webnn_py.pictures import GraphPicture
    from webnn_py.profiling import DeviceRates, GraphProfile, KernelProfile, OperatorProfile
    from webnn_py.web_export import save_js
    from webnn_py.webnn_files import WebnnFileError, load_webnn, save_webnn
else:

    def __getattr__(name: str) -> object:
        """Import a public name whose module is loaded when it is first used."""
        from importlib import import_module  # noqa: PLC0415 - used here only

        modules = {
            "DeviceRates": "profiling",
            "GraphPicture": "pictures",
            "GraphProfile": "profiling",
            "KernelProfile": "profiling",
            "NonFinite": "checking",
            "OperatorProfile": "profiling",
            "ValueRange": "checking",
            "WebnnFileError": "webnn_files",
            "load_webnn": "webnn_files",
            "save_js": "web_export",
            "save_webnn": "webnn_files",
        }
        if name not in modules:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{modules[name]}"), name)
        return found


__all__ = [
    "ML",
    "BackendInfo",
    "ContextStatistics",
    "DOMException",
    "DestroyedBufferError",
    "DeviceRates",
    "Extension",
    "GraphPicture",
    "GraphProfile",
    "InvalidStateError",
    "KernelProfile",
    "MLBuffer",
    "MLBufferDescriptor",
    "MLContext",
    "MLContextLostInfo",
    "MLGraph",
    "MLGraphBuilder",
    "MLNumber",
    "MLOperand",
    "MLOperandDataType",
    "MLOperandDataTypeLike",
    "MLOperandDescriptor",
    "MLPowerPreference",
    "MLPromise",
    "MLTensor",
    "NonFinite",
    "NotFoundError",
    "NotSupportedError",
    "Observer",
    "OperationError",
    "OperatorProfile",
    "PromiseState",
    "QuotaExceededError",
    "SecurityError",
    "TimelineStatistics",
    "UnknownError",
    "ValueRange",
    "WebnnFileError",
    "load_webnn",
    "open_ml",
    "save_js",
    "save_webnn",
]


def __dir__() -> list[str]:
    """Return the public names; modules that are documented by their path, as ``webnn_py.runtime``, are imported."""
    return [*__all__, "__version__"]


for _name in __all__:
    _thing = globals().get(_name)  # those that are imported when they are used name this module themselves
    if isinstance(_thing, type):
        _thing.__module__ = __name__  # messages and reprs show the public name
del _extensions, _name, _operator_documentation, _thing
