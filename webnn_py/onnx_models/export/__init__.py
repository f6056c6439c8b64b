"""Drawings of an ``MLGraphBuilder`` as ONNX models, which onnxruntime runs with the same results.

From the top::

    saving        save, to_model, model_of: a drawing, or a device's graph, as a model in a file or in memory
    model_export  walks over the graph: names, initializers, functions
    writing       one operator by its rule
    rules         one rule for each WebNN operator, in the categories of ``webnn_py.operators``
    table         @rule
    images, types what rules share: layouts of images; data types that onnxruntime lacks
    body          what a rule writes to; decompositions draw into it, too

An operator with a *twin*, an ONNX operator of the same meaning, is that. Any other is a function of the model, named
as the operator, whose body says exactly what it means; its calls keep the options, so that ``OnnxModel`` draws the
operator again (``operator_calls``).
"""

from webnn_py.onnx_models.export.saving import model_of, save, to_model

__all__ = ["model_of", "save", "to_model"]
