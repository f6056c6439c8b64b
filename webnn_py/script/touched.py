"""What operations touch, told from the steps that they take: for those who watch, and at no cost without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from webnn_py.device.backend import Storage
from webnn_py.timelines.device_timeline import DeviceOperation
from webnn_py.tracing.operation import Touched

_NOTHING: Final[Touched] = ((), (), None)

_OF_STEPS: Final[Mapping[str, Callable[..., Touched]]] = {
    "create_buffer": lambda storage: ((), (storage,), None),
    "create_constant_buffer": lambda storage, _data: ((), (storage,), None),
    "import_buffer": lambda storage, _memory: ((), (storage,), None),
    "export_to_gpu": lambda storage, _give: ((storage,), (), None),
    "write_buffer": lambda storage, _data, _line: ((), (storage,), None),
    "clear_buffer": lambda storage, _line: ((), (storage,), None),
    "read_buffer": lambda storage, _readback: ((storage,), (), None),
    "copy_buffer": lambda source, destination, _region, _line: ((source,), (destination,), None),
    "dispatch": lambda graph, inputs, outputs, _line: (inputs.values(), outputs.values(), graph),
    "build": lambda _graph, handle, _progress=None: ((), (), handle),
    "save_graph": lambda _device, handle, _put: ((), (), handle),
    "load_graph": lambda _device, handle, _take: ((), (), handle),
    "release": lambda thing: ((), (thing,), None) if isinstance(thing, Storage) else ((), (), thing),
}
"""Functions of what the steps, methods of the device, are given."""


def touched(operation: DeviceOperation) -> Touched:
    """The buffers and the graph of an operation that has not ended."""
    of_step, given = _OF_STEPS.get(operation.kind), getattr(operation, "_given", None)
    if given is None and isinstance(operation.work, partial):
        given = operation.work.args
    return _NOTHING if of_step is None or given is None else of_step(*given)
