"""The lowering of products with matrices of a few bits to onnxruntime's MatMulNBits."""

from __future__ import annotations

from webnn_py.core.graph import Node
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.nodes import MICROSOFT
from webnn_py.onnx_export.table import Written


def matmul_nbits(
    body: Body,
    node: Node,
    a: OnnxTensor,
    b: OnnxTensor,
    scales: OnnxTensor,
    zero_points: OnnxTensor | None = None,
    bias: OnnxTensor | None = None,
) -> Written:
    """Write MatMulNBits, in float32."""
    options = node.options
    how = {"K": options["inner"], "N": scales.shape[0]}
    how |= {name: options[name] for name in ("accuracy_level", "bits", "block_size")}
    wide_a, wide_scales = body.cast(a, "float32"), body.cast(scales, "float32")
    inputs = [wide_a, b, wide_scales, zero_points, None, None if bias is None else body.cast(bias, "float32")]
    (y,) = body.nodes_outputs("MatMulNBits", inputs, ["float32"], domain=MICROSOFT, **how)
    return body.cast(y, a.data_type)
