"""The onnxruntime device: graphs as ONNX models in memory, each run by a session of onnxruntime.

From the top; each part uses only parts below it:

* ``device_record``: its entry in the registry.
* ``backend``: the device, as the device timeline sees it.
* ``executable``: a graph made ready, and run.
* ``folding``: batch normalizations in the filters of convolutions.
* ``reshaping``, ``integer_products``: fewer reshapes, and products of bytes as such.
* ``passes``: the passes that rewrite a graph, in their order.
* ``guarded``, ``noticing``: rules that hold for usual numbers only, and how others are noticed.
* ``session``: a session with buffers bound to it.
* ``engine``: how onnxruntime is told what to do: threads, provider, and which optimizations are left out.
* ``idle_optimizers``: which of them would find nothing.
* ``claims``: which operators are left to their decompositions.
* ``rules``: which are written otherwise than ``webnn_py.onnx_export`` does.
* ``dynamic_quantization``: dynamic quantization as one node.
"""
