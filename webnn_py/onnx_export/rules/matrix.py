"""Matrix products; float16 is computed in float32."""

from webnn_py.core.graph import Node
from webnn_py.core.operators import matrix
from webnn_py.core.operators.casting import cast_number
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import FLOAT, computed, widened
from webnn_py.onnx_export.table import rule, rules


@rule(matrix.gemm)
def gemm(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor, c: OnnxTensor | None = None) -> OnnxTensor:
    """Gemm."""
    options, data_type = node.options, node.outputs[0].data_type
    operands = [a, b] if c is None else [a, b, c]
    factors = {name: float(cast_number(options[name], data_type)) for name in ("alpha", "beta")}
    transposed = {"transA": int(options["a_transpose"]), "transB": int(options["b_transpose"])}
    return widened(body, "Gemm", *operands, native=FLOAT, **factors, **transposed)


rules(computed, {matrix.matmul: "MatMul"})
