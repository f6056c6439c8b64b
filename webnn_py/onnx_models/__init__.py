"""ONNX models as graphs of an ``MLGraphBuilder``; needs the extra ``onnx``.

From the top::

    model           OnnxModel: load a file, look at its inputs and outputs, convert it
    limits          the limits on what a model may cost, and where each is checked
    problems        the errors for models that are refused; a problem for each node that cannot be converted
    export          the other direction: save() and to_model(), by ``webnn_py.onnx_export``
    reading         parses files and checks them: external data, tensors, element types, functions, order of nodes
    conversion      converts nodes in order: scopes of values, control flow, sequences, functions
    folding         computes values that are known while building, and estimates what that costs
    rule_table      the table of rules: how one is declared, chosen by version, and called
    rules           the rules: one for each ONNX operator and version, by category
    rule_helpers    parts that several rules share
    simplification  passes that simplify ONNX models, for ``webnn-py convert`` and ``info``

A value is *static* when it can be computed while the graph is built: a numpy array. All others are operands. Shapes
are fixed, so that values computed from shapes are static, and no nodes of them remain.
"""

from webnn_py.onnx_models.export import save, to_model
from webnn_py.onnx_models.limits import ModelLimits
from webnn_py.onnx_models.model import OnnxModel, TensorInfo
from webnn_py.onnx_models.problems import InvalidModelError, Problem, UnsupportedModelError
from webnn_py.onnx_models.reading.contents import ModelMetadata

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
