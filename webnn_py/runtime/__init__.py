"""Sessions: models that are run on tensors, in an environment that looks after the device.

From the top::

    blocking      the same without await, for code that is not asynchronous; imported by its name
    loop_thread   the trio loop, in a thread of its own, that blocking runs on
    environment   Environment: one device, its sessions, copies between tensors
    session       InferenceSession: a model, run on feeds
    capture       a run that is frozen, to be run again on the same tensors
    transfer      copies between the host and the device that depend on no session
    graph_cache   graphs of ONNX models in a folder, for a later process
    models        what a session runs: an ONNX model, or a graph that a user has built
    bindings      feeds and fetches: checked, before anything is enqueued
    array_protocols  what tensors have in common with numpy's arrays
    tensor        Tensor: an array on the host, or a buffer on the device
    contexts      the environment's context: opened by its first user, ended by its last
    records

All of it stands on the public API, so it is the same on every device. ONNX is imported when a model needs it.
"""

from webnn_py.runtime.environment import Environment
from webnn_py.runtime.records import EnvironmentDevice, EnvironmentStatistics, TensorDescriptor, TensorLocation
from webnn_py.runtime.session import InferenceSession
from webnn_py.runtime.tensor import Tensor

__all__ = [
    "Environment",
    "EnvironmentDevice",
    "EnvironmentStatistics",
    "InferenceSession",
    "Tensor",
    "TensorDescriptor",
    "TensorLocation",
]

for _name in __all__:
    _thing = globals()[_name]
    if isinstance(_thing, type):
        _thing.__module__ = __name__  # messages and reprs show the public name
del _name, _thing
