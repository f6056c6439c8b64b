"""The onnxruntime device: graphs as ONNX models in memory, each run by a session of onnxruntime.

From the top; each part uses only parts below it:

* ``device_record``: its entry in the registry.
* ``backend``: the device, as the device timeline sees it; ``cuda_backend``: the same on NVIDIA GPUs.
* ``executable``: compiles a graph into a session, and runs it; ``cuda_graph``: replays runs as CUDA graphs.
* ``cuda_memory``: a GPU's memory and its stream.
* ``passes``: the passes that rewrite a graph; ``passes/pipeline.py`` has their order.
* ``session``: a session with the buffers that are bound to it.
* ``lowering``: writes operators in ONNX: exactly, or fast and with a guard.
* ``providers``: onnxruntime's execution providers, and how graphs are written for each.
* ``engine``: the options of onnxruntime: threads, provider, and disabled optimizers.
* ``analyses``: facts about a graph's values, for lowering and passes.
* ``idle_optimizers``: the optimizers of onnxruntime that would find nothing to do.
* ``claimed_operators``: the operators that are not expanded into their decompositions.
* ``own_operators``: operators that passes create and the specification lacks.
"""

import os

# Its thread, which starts when onnxruntime is imported, makes forked processes hang or abort at their end.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
