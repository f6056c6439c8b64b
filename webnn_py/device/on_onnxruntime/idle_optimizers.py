"""Which of onnxruntime's optimizers would find nothing in a model: each walks over all of it, some of them twice."""

from collections.abc import Mapping
from typing import Final

_GELU: Final = ("Erf", "Gelu", "Tanh")
_NORMALIZATION: Final = ("LayerNormalization", "ReduceMean")
_PRODUCT: Final = ("Gemm", "MatMul")
_QUANTIZATION: Final = ("DequantizeLinear", "QuantizeLinear")

SOUGHT: Final[Mapping[str, tuple[str, ...]]] = {
    "AttentionFusion": _NORMALIZATION,
    "BiasDropoutFusion": ("Dropout",),
    "BiasGeluFusion": _GELU,
    "BiasSkipLayerNormFusion": _NORMALIZATION,
    "BiasSoftmaxFusion": ("Softmax",),
    "CommonSubexpressionElimination": (),  # there are none
    "ConstantSharing": (),  # equal small constants are one already
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
    "GroupQueryAttentionFusion": _PRODUCT,
    "GroupQueryAttentionPreNormFusion": _PRODUCT,
    "LabelEncoderFusion": ("LabelEncoder",),
    "LayerNormFusionL1": _NORMALIZATION,
    "LayerNormFusionL2": _NORMALIZATION,
    "MatMulActivationFusion": _PRODUCT,
    "MatMulAddFusion": _PRODUCT,
    "MatMulIntegerToFloatFusion": ("MatMulInteger",),
    "MatMulNBitsFusion": _PRODUCT,
    "MatMulNBitsMlpFusion": _PRODUCT,
    "MatMulNBitsQkvFusion": _PRODUCT,
    "MatmulTransposeFusion": ("Transpose",),
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
