"""The onnxruntime device: graphs as ONNX models in memory, each run by a session of onnxruntime.

From the top; each part uses only parts below it:

* ``device_record``: its entry in the registry.
* ``backend``: the device, as the device timeline sees it.
* ``executable``: the way of a graph to a session, and its runs.
* ``passes``: the passes that rewrite a graph; ``passes/pipeline.py`` has their order.
* ``session``: a session with the buffers that are bound to it.
* ``lowering``: how operators are written in ONNX: exactly, or fast and with a guard.
* ``engine``: the options of onnxruntime: threads, provider, and optimizers that are left out.
* ``analyses``: what lowering and passes know of a graph's values.
* ``idle_optimizers``: the optimizers of onnxruntime that would find nothing.
* ``claimed_operators``: the operators that are not left to their decompositions.
* ``own_operators``: operators that passes make and the specification lacks.
"""
