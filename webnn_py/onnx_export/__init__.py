"""Graphs as ONNX models, which onnxruntime runs with the same results; needs the extra ``onnx``.

From the top::

    inlined_export      InlinedExport: a model for onnxruntime to run, without functions
    model_export        model_of: a model to save, with names, initializers and functions
    node_passes         passes over the nodes of a model to run
    writing             writes one operator by its rule
    rules               one rule for each WebNN operator, in the categories of ``webnn_py.core.operators``
    table               @rule, and rules() for operators that are written alike
    image_layouts       layouts of images
    missing_data_types  data types that onnxruntime lacks, computed in others
    body                Body: the nodes of one operator, to which rules and decompositions write
    guards              tensors that show whether a fast rule was exact
    nodes               nodes before they are messages
    function_digests    the names and digests of functions

An operator with a *twin*, an ONNX operator of the same meaning, becomes that operator. Any other becomes a function of
the model with the operator's name, whose body computes exactly the same; its calls keep the options, so that
``OnnxModel`` draws the operator again (``onnx_models.conversion.webnn_operator_calls``).
"""

from webnn_py.onnx_export.model_export import model_of

__all__ = ["model_of"]
