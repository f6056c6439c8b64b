"""The devices of this package besides the reference device, and what they share beyond the seam that all backends have.

* ``composites``: operators that some devices have as one.
* ``plan``, ``in_place``, ``shared_constants``: parts of a build: an arena, updated caches, constants kept once.
* ``kernel_nodes``, ``flops``: what a kernel has computed, for timings.
* ``content_keys``: keys of constants' bytes; ``saved_code``: the form in which a device saves a graph.
* ``worker_thread``, ``host_processor``, ``processor_options``: for devices that run on the processor.
* ``copying``: copies of elements between buffers.
* ``lending``: memory in common with a user's own GPU work.
* ``forking``: drivers and native objects in a forked process.
"""

from webnn_py.core.device.registry import add_device
from webnn_py.core.extension import SHORT_FORMS, Extension


def _webgpu_interop() -> Extension:
    from webnn_py.devices.wgpu.interop import WebGPUInterop  # noqa: PLC0415 - imported when it is used

    return WebGPUInterop()


add_device("numpy", "webnn_py.devices.numpy.device_record:RECORD")
add_device("wgpu", "webnn_py.devices.wgpu.device_record:RECORD")
add_device("onnxruntime", "webnn_py.devices.onnxruntime.device_record:RECORD")
SHORT_FORMS["webgpu-interop"] = _webgpu_interop
