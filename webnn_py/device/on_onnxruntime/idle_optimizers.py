"""Which of onnxruntime's optimizers would find nothing in a model: each walks over all of it, some of them twice."""

import platform
from collections.abc import Mapping
from typing import Final

_CONVOLUTION: Final = ("Conv", "FusedConv")
_GELU: Final = ("Erf", "Gelu", "Tanh")
_NORMALIZATION: Final = ("LayerNormalization", "ReduceMean")
_POOLS: Final = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize")
_PRODUCT: Final = ("Gemm", "MatMul")
_QUANTIZATION: Final = ("DequantizeLinear", "QuantizeLinear")

_HAS_BLOCKS: Final = platform.machine() in {"AMD64", "x86_64"}
"""Whether floats are laid out in blocks of channels: on other processors, by pixels."""

SOUGHT: Final[Mapping[str, tuple[str, ...]]] = {
    "AttentionFusion": _NORMALIZATION,
    "BiasDropoutFusion": ("Dropout",),
    "BiasGeluFusion": _GELU,
    "BiasSkipLayerNormFusion": _NORMALIZATION,
    "BiasSoftmaxFusion": ("Softmax",),
    "CommonSubexpressionElimination": (),  # there are none
    "ConstantSharing": (),  # equal small constants are one already
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
    "MatMulActivationFusion": (),  # of another provider alone
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
"""The operators of which one at least must be there for an optimizer to find something, by onnxruntime's name for it.

Names that an onnxruntime does not have, it passes over.
"""


def idle(there: set[str] | frozenset[str]) -> set[str]:
    """The optimizers that find nothing in a model of these operators."""
    return {name for name, sought in SOUGHT.items() if there.isdisjoint(sought)}
