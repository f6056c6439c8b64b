"""ONNX models drawn with an ``MLGraphBuilder``; needs the extra ``onnx``.

From the top::

    model      OnnxModel: load a file, look at its inputs and outputs, draw it
    drawing    walks the model's nodes; each value on the way is known or drawn
    folding    computes what depends on known values only
    rules      one rule for each ONNX operator, in the categories of ``webnn_py.operators``
    table      @rule, and the choice of a rule by the operator's version
    draw       what a rule draws with

A value is *known* when it can be computed while drawing: a numpy array. All others are *drawn*: operands. Shapes are
fixed, so that whatever is computed from shapes is known, and no node of it remains.
"""

from webnn_py.onnx_models.model import OnnxModel, TensorInfo
from webnn_py.onnx_models.problems import Problem, UnsupportedModelError

__all__ = ["OnnxModel", "Problem", "TensorInfo", "UnsupportedModelError"]

for _name in __all__:
    globals()[_name].__module__ = __name__  # messages and reprs show the public name
del _name
