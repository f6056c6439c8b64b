"""Verdicts of onnxruntime's execution providers about graphs, drawn as Chromium draws them on Windows.

::

    drawing     a graph as the ONNX model that Chromium writes of it: operator by operator, nothing rewritten
    rules/      how it writes each operator
    registry    the table of these rules
    asking      which operators of such a model a provider takes
"""
