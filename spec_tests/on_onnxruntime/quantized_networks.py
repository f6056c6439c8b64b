"""Networks of quantized weights in the operator that onnxruntime has of its own."""

from onnx import helper

from spec_tests.support.computing import compute
from spec_tests.support.onnx_programs import make_model
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel

ENDS = "y", "yh", "yc"
INPUTS = "w", "r", "b", "", "h", "c", "p", "ws", "wz", "rs", "rz"


class Weights:
    """The inputs of a network, by their names in ``INPUTS``."""

    def __init__(self, units, arrays):
        self.units = units
        self.arrays = arrays

    def node(self, x, prefix="", direction="forward"):
        given = [prefix + name if name in self.arrays else "" for name in INPUTS]
        options = {"hidden_size": self.units, "direction": direction, "domain": "com.microsoft"}
        return helper.make_node("DynamicQuantizeLSTM", [x, *given], [prefix + end for end in ENDS], **options)

    def named(self, prefix=""):
        return {prefix + name: array for name, array in self.arrays.items()}


def of_one(weights, x, *, direction="forward", inputs=()):
    """Return a model of one network, some of whose weights are inputs, and the arrays that its inputs are given."""
    arrays = {"x": x, **weights.arrays}
    initializers = {name: array for name, array in weights.arrays.items() if name not in inputs}
    made = make_model([weights.node("x", direction=direction)], arrays, ENDS, initializers, opset=15)
    return made, {name: arrays[name] for name in ("x", *inputs)}


async def computed(ml, model, inputs, *, backend="onnxruntime"):
    context = await ml.create_context(backend=backend, **({"threads": 1} if backend == "onnxruntime" else {}))
    builder = MLGraphBuilder(context)
    return await compute(context, builder, inputs, OnnxModel.load(model).convert(builder))
