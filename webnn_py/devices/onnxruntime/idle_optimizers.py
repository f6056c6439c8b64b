"""The optimizers of onnxruntime with nothing to do in a model: each walks over all of it, some of them twice."""

import platform
from collections.abc import Mapping
from typing import Final

_CONVOLUTION: Final = ("Conv",)
_GELU: Final = ("Erf", "Gelu", "Tanh")
_NORMALIZATION: Final = ("LayerNormalization", "ReduceMean")
_POOLS: Final = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize")
_PRODUCT: Final = ("Gemm", "MatMul")
_QUANTIZATION: Final = ("DequantizeLinear", "QuantizeLinear")

_HAS_BLOCKS: Final = platform.machine() in {"AMD64", "x86_64"}
"""Whether onnxruntime lays float images out in blocks of channels; on other processors it lays them out by pixels."""

SOUGHT: Final[Mapping[str, tuple[str, ...]]] = {
    "AttentionFusion": _NORMALIZATION,
    "BiasDropoutFusion": ("Dropout",),
    "BiasGeluFusion": _GELU,
    "BiasSkipLayerNormFusion": _NORMALIZATION,
    "BiasSoftmaxFusion": ("Softmax",),
    "CommonSubexpressionElimination": ("Scan",),  # common subexpressions remain only in subgraphs
    "ConstantSharing": (),  # equal small constants are already shared
    "ConvActivationFusion": ("Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"),
    "ConvAddActivationFusion": _CONVOLUTION,
    "DynamicQuantizeMatMulFusion": ("MatMulInteger",),
    "EmbedLayerNormFusion": _NORMALIZATION,
    "EnsureUniqueDQForNodeUnit": _QUANTIZATION,
    "FastGeluFusion": ("Tanh",),
    "FreeDimensionOverrideTransformer": (),  # no dimension is free
    "GatherSliceToSplitFusion": ("Gather", "Slice"),
    "GatherToSliceFusion": ("Gather",),
    "GeluFusionL1": ("Erf",),
    "GeluFusionL2": ("Erf",),
    "GemmActivationFusion": _PRODUCT,
    "GroupQueryAttentionFusion": ("GroupQueryAttention",),
    "GroupQueryAttentionPreNormFusion": ("GroupQueryAttention",),
    "LabelEncoderFusion": ("LabelEncoder",),
    "LayerNormFusionL1": _NORMALIZATION,
    "LayerNormFusionL2": _NORMALIZATION,
    "MatMulActivationFusion": (),  # of another provider only
    "MatMulAddFusion": ("MatMul",),
    "MatMulIntegerToFloatFusion": ("MatMulInteger",),
    "MatMulNBitsFusion": ("MatMulNBits",),
    "MatMulNBitsMlpFusion": ("MatMulNBits",),
    "MatMulNBitsQkvFusion": ("MatMulNBits",),
    "MatmulTransposeFusion": ("Transpose",),
    "NchwcTransformer": (*_CONVOLUTION, *_POOLS),
    "NhwcTransformer": ("QLinearConv",) if _HAS_BLOCKS else ("QLinearConv", *_CONVOLUTION, *_POOLS),
    "QDQFinalCleanupTransformer": _QUANTIZATION,
    "QDQPropagationTransformer": _QUANTIZATION,
    "QuickGeluFusion": ("Sigmoid",),
    "ReshapeFusion": ("Reshape",),
    "SimplifiedLayerNormFusion": ("Pow", "ReduceMean"),
    "SkipLayerNormFusion": _NORMALIZATION,
    "SliceConcatToSpaceToDepthFusion": ("Slice",),
    "TransposeOptimizer": ("Transpose",),
    "TransposeOptimizer_CPUExecutionProvider": ("Transpose",),
}
"""Operators by the name of an optimizer: unless one of them is in the model, the optimizer finds nothing.

onnxruntime ignores names that it does not have.
"""


def idle(there: set[str] | frozenset[str]) -> set[str]:
    """Return the optimizers that find nothing in a model of these operators."""
    return {name for name, sought in SOUGHT.items() if there.isdisjoint(sought)}
