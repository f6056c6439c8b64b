"""Verdicts of onnxruntime's execution providers about graphs, drawn as Chromium draws them on Windows.

::

    drawing         a graph as the ONNX model that Chromium writes of it: operator by operator, nothing rewritten
    rules/          how it writes each operator
    registry        the table of these rules
    placing         where onnxruntime places the nodes of such a model
    engine_process  the process in which it does
    asking          which operators of a graph a provider takes, and why not the others
"""
