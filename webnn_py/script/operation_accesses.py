"""The buffers and graphs that operations of a device timeline access, for traces.

They are found from the arguments of the device's methods on request, so that they cost nothing without a trace.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from webnn_py.device.backend import Storage
from webnn_py.timelines.device_timeline import DeviceOperation
from webnn_py.tracing.operation import Accesses

_NONE: Final[Accesses] = ((), (), None)

_BY_KIND: Final[Mapping[str, Callable[..., Accesses]]] = {
    "create_buffer": lambda storage: ((), (storage,), None),
    "create_exportable_buffer": lambda storage: ((), (storage,), None),
    "create_constant_buffer": lambda storage, _data: ((), (storage,), None),
    "import_buffer": lambda storage, _memory: ((), (storage,), None),
    "export_to_gpu": lambda storage, *_: ((storage,), (), None),
    "return_from_gpu": lambda storage, _arrival, _line: ((), (storage,), None),
    "write_buffer": lambda storage, _data, _line: ((), (storage,), None),
    "clear_buffer": lambda storage, _line: ((), (storage,), None),
    "read_buffer": lambda storage, _readback: ((storage,), (), None),
    "copy_buffer": lambda source, destination, _region, _line: ((source,), (destination,), None),
    "dispatch": lambda graph, inputs, outputs, _line: (inputs.values(), outputs.values(), graph),
    "build": lambda _graph, handle, *_rest: ((), (), handle),
    "save_graph": lambda _device, handle, _put: ((), (), handle),
    "load_graph": lambda _device, handle, _take: ((), (), handle),
    "release": lambda thing: ((), (thing,), None) if isinstance(thing, Storage) else ((), (), thing),
}
"""By the kind of operation: the accesses, from the arguments of the device's method."""


def accesses_of(operation: DeviceOperation) -> Accesses:
    """Return the accesses of an operation that has not ended."""
    of_arguments, arguments = _BY_KIND.get(operation.kind), getattr(operation, "_given", None)
    if arguments is None and isinstance(operation.work, partial):
        arguments = operation.work.args
    return _NONE if of_arguments is None or arguments is None else of_arguments(*arguments)
