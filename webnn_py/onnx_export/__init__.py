"""Graphs as ONNX models, which onnxruntime runs with the same results; needs the extra ``onnx``.

From the top::

    inlined_export  a model that is run, and not read back
    model_export    model_of: walks over the graph: names, initializers, functions
    writing         one operator by its rule
    rules           one rule for each WebNN operator, in the categories of ``webnn_py.operators``
    table           @rule
    images, types   what rules share: layouts of images; data types that onnxruntime lacks
    body            what a rule writes to; decompositions draw into it, too
    drafts          nodes before they are ONNX
    sealing         the names and digests of functions

An operator with a *twin*, an ONNX operator of the same meaning, is that. Any other is a function of the model, named
as the operator, whose body says exactly what it means; its calls keep the options, so that ``OnnxModel`` draws the
operator again (``onnx_models.operator_calls``).
"""

from webnn_py.onnx_export.model_export import model_of

__all__ = ["model_of"]
