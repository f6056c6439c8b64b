"""ONNX models as graphs of an ``MLGraphBuilder``; needs the extra ``onnx``.

From the top::

    model               OnnxModel: load a file, look at its inputs and outputs, convert it
    reading             parses a model and checks its form; external_data, tensors, functions: of its parts
    model_conversion    walks the model's nodes; each value on the way is static or an operand
    simplification      a simpler ONNX model of the same results; inlining: of a branch; contents: what a model has
    folding             computes what depends on static values only; folding_costs tells before what that takes
    weights             the model's initializers: read once for all conversions, and told by a digest
    limits              what a model may cost, and what it has cost
    rules               one rule for each ONNX operator, in the categories of ``webnn_py.operators``
    table               @rule, and the choice of a rule by the operator's version
    calling             a node's inputs and attributes as a rule's arguments
    conversion_context  what a rule builds with

A value is *static* when it can be computed while the graph is built: a numpy array. All others are operands. Shapes
are fixed, so that whatever is computed from shapes is static, and no node of it remains.
"""

from webnn_py.onnx_models.limits import ModelLimits
from webnn_py.onnx_models.model import OnnxModel, TensorInfo
from webnn_py.onnx_models.problems import InvalidModelError, Problem, UnsupportedModelError

__all__ = ["InvalidModelError", "ModelLimits", "OnnxModel", "Problem", "TensorInfo", "UnsupportedModelError"]

for _name in __all__:
    globals()[_name].__module__ = __name__  # messages and reprs show the public name
del _name
