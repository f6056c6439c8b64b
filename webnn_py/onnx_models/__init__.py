"""ONNX models as graphs of an ``MLGraphBuilder``; needs the extra ``onnx``.

From the top::

    model               OnnxModel: load a file, look at its inputs and outputs, convert it
    reading             parses a model and checks its form; external_data, tensors, functions: of its parts
    ordering            the nodes that outputs need, sorted
    model_conversion    walks the model's nodes; each value on the way is static or an operand
    scopes              what nodes see: values by name, operator sets, attributes of a function's call
    control_flow        If, Loop and Scan: inner graphs in place of the node
    sequences           their operators: a sequence is a tuple of values; joining: of tensors, to one
    empty_tensors       what has no elements is known, whatever it is computed from
    simplification      a simpler ONNX model of the same results; inlining: of a branch; contents: what a model has
    folding             computes what depends on static values only; folding_costs tells before what that takes
    weights             the model's initializers: read once for all conversions, and told by a digest
    limits              what a model may cost, and what it has cost
    rules               one rule for each ONNX operator, in the categories of ``webnn_py.operators``
    table               @rule, and the choice of a rule by the operator's version
    calling             a node's inputs and attributes as a rule's arguments
    conversion_context  what a rule builds with
    problems            what cannot be converted, grouped; freezing tells which inputs to freeze
    operator_calls      WebNN's operators in models that this package wrote
    export              the other way: drawings as ONNX models, which ``webnn_py.onnx_export`` writes

A value is *static* when it can be computed while the graph is built: a numpy array. All others are operands. Shapes
are fixed, so that whatever is computed from shapes is static, and no node of it remains.
"""

from webnn_py.onnx_models.export import save, to_model
from webnn_py.onnx_models.limits import ModelLimits
from webnn_py.onnx_models.metadata import ModelMetadata
from webnn_py.onnx_models.model import OnnxModel, TensorInfo
from webnn_py.onnx_models.problems import InvalidModelError, Problem, UnsupportedModelError

__all__ = [
    "InvalidModelError",
    "ModelLimits",
    "ModelMetadata",
    "OnnxModel",
    "Problem",
    "TensorInfo",
    "UnsupportedModelError",
    "save",
    "to_model",
]

for _name in __all__:
    globals()[_name].__module__ = __name__  # messages and reprs show the public name
del _name
