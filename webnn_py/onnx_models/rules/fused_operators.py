"""Operators that onnxruntime and newer opsets fuse: products, normalization with sums, activations."""

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.axes import check_rank, counted
from webnn_py.onnx_models.rule_helpers.normalizations import root_mean_square
from webnn_py.onnx_models.rule_helpers.windows import ConvolutionAttributes
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.activation import gelu as onnx_gelu
from webnn_py.onnx_models.rules.convolution import conv
from webnn_py.onnx_models.rules.matrix import GemmAttributes, TransposeAttributes, gemm, matmul
from webnn_py.onnx_models.rules.normalization import mean_and_inverse

LAYER_EPSILON: Final = 1e-12
QUICK_ALPHA: Final = 1.7020000219345093
"""1.702 as float32."""


@rule("com.microsoft.TransposeMatMul", 1)
def transpose_matmul(
    context: ConversionContext, a: MLOperand, b: MLOperand, *, attributes: TransposeAttributes
) -> MLOperand:
    """Return alpha · A · B, each transposed first."""
    return fused_matmul(context, a, b, attributes=attributes)


@rule("com.microsoft.FusedMatMul", 1)
def fused_matmul(
    context: ConversionContext,
    a: MLOperand,
    b: MLOperand,
    *,
    attributes: TransposeAttributes,
    transBatchA: bool = False,  # noqa: N803 - ONNX's name
    transBatchB: bool = False,  # noqa: N803 - ONNX's name
) -> MLOperand:
    """Multiply matrices, transposed where asked for; a transposed batch stands after the rows."""
    if not a.rank or not b.rank:
        refuse("the rank of a factor", 0, "at least 1")
    left = _transposed(context, a, rows=attributes.transA, batch=transBatchA)
    right = _transposed(context, b, rows=attributes.transB, batch=transBatchB)
    y = matmul(context, left, right)
    return y if attributes.alpha == 1 else context.mul(y, context.number(attributes.alpha, y))


def _transposed(context: ConversionContext, x: MLOperand, *, rows: bool, batch: bool) -> MLOperand:
    order = list(range(x.rank))
    if batch and x.rank > 2:  # [rows, batch ..., columns]
        order = [*order[1:-1], order[0], order[-1]]
    if rows and x.rank > 1:
        order[-2:] = order[:-3:-1]
    return x if order == sorted(order) else context.transpose(x, permutation=order)


@rule("com.microsoft.FusedGemm", 1)
def fused_gemm(
    context: ConversionContext,
    a: MLOperand,
    b: MLOperand,
    c: MLOperand | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    attributes: GemmAttributes,
) -> MLOperand:
    """Return the activation of alpha · A · B + beta · C."""
    given = (activation_alpha, activation_beta, activation_gamma)
    y = gemm(context, a, b, c, attributes=attributes)
    return _activated(context, y, activation, [item for item in given if item is not None])


@rule("com.microsoft.FusedConv", 1)
def fused_conv(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    b: MLOperand | None = None,
    z: MLOperand | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] | None = None,
    attributes: ConvolutionAttributes,
) -> MLOperand:
    """Return the activation of a convolution plus Z."""
    y = conv(context, x, w, b, attributes=attributes)
    return _activated(context, y if z is None else context.add(y, z), activation, activation_params or ())


def _activated(context: ConversionContext, x: MLOperand, activation: str, parameters: Sequence[float]) -> MLOperand:
    plain = {"Relu": context.relu, "Sigmoid": context.sigmoid, "Tanh": context.tanh}
    given = list(parameters)
    if activation in {"", *plain}:
        return plain[activation](x) if activation else x
    if activation == "LeakyRelu":
        return context.leaky_relu(x, alpha=given[0] if given else 0.01)
    if activation == "Clip" and len(given) == 2:
        return context.clamp(x, min_value=given[0], max_value=given[1])
    if activation == "HardSigmoid" and len(given) in (0, 2):
        alpha, beta = given or (0.2, 0.5)
        return context.hard_sigmoid(x, alpha=alpha, beta=beta)
    allowed = "Relu, Sigmoid, Tanh, LeakyRelu, Clip or HardSigmoid with its parameters"
    return refuse("attribute activation", f"{activation} {given}", allowed)


@rule("com.microsoft.Gelu", 1)
def gelu(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the Gaussian error linear unit."""
    return context.gelu(x)


@rule("com.microsoft.BiasGelu", 1)
def bias_gelu(context: ConversionContext, a: MLOperand, b: MLOperand) -> MLOperand:
    """Return the Gaussian error linear unit of a sum."""
    return context.gelu(context.add(a, b))


@rule("com.microsoft.FastGelu", 1)
def fast_gelu(context: ConversionContext, x: MLOperand, bias: MLOperand | None = None) -> MLOperand:
    """Return the Gaussian error linear unit, approximated by tanh, of a sum with a bias."""
    return onnx_gelu(context, x if bias is None else context.add(x, bias), approximate="tanh")


@rule("com.microsoft.QuickGelu", 1)
def quick_gelu(context: ConversionContext, x: MLOperand, *, alpha: float = QUICK_ALPHA) -> MLOperand:
    """Return x · sigmoid(alpha · x)."""
    return context.mul(x, context.sigmoid(context.mul(x, context.number(alpha, x))))


@rule("RMSNormalization", 23)
def rms_normalization(
    context: ConversionContext, x: MLOperand, scale: MLOperand, *, axis: int, epsilon: float, stash_type: Literal[1]
) -> MLOperand:
    """Divide by the root of the mean square over the axes from one on, and multiply by a scale.

    Every layer of language models has some, and ONNX's body would take several times as long to import.
    """
    return _scaled_root_mean_square(context, x, scale, counted(axis, x.rank), epsilon)[0]


@rule("SimplifiedLayerNormalization", 1)
def simplified_layer_normalization(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: Literal[1] = 1,
) -> list[MLOperand]:
    """Normalize as RMSNormalization; the second output is the inverse of the root mean square."""
    return list(_scaled_root_mean_square(context, x, scale, counted(axis, x.rank), epsilon))


def _scaled_root_mean_square(
    context: ConversionContext, x: MLOperand, scale: MLOperand, first: int, epsilon: float
) -> tuple[MLOperand, MLOperand]:
    """Return the normalized and scaled tensor, and the inverse of the root mean square."""
    y, inverse = root_mean_square(context, x, range(first, x.rank), epsilon)
    return context.mul(y, scale), inverse


@rule("com.microsoft.SkipLayerNormalization", 1)
def skip_layer_normalization(
    context: ConversionContext,
    x: MLOperand,
    skip: MLOperand,
    gamma: MLOperand,
    beta: MLOperand | None = None,
    bias: MLOperand | None = None,
    *,
    epsilon: float = LAYER_EPSILON,
) -> list[MLOperand | None]:
    """Normalize a sum, which is the fourth output, after its mean and inverse standard deviation."""
    total = _total(context, x, skip, bias)
    y = context.layer_normalization(total, scale=gamma, bias=beta, axes=[total.rank - 1], epsilon=epsilon)
    means = mean_and_inverse(context, total, total.rank - 1, epsilon) if any(context.wanted[1:3]) else [None, None]
    return [y, *means, total]


@rule("com.microsoft.SkipSimplifiedLayerNormalization", 1)
def skip_simplified_layer_normalization(
    context: ConversionContext,
    x: MLOperand,
    skip: MLOperand,
    gamma: MLOperand,
    bias: MLOperand | None = None,
    *,
    epsilon: float = LAYER_EPSILON,
) -> list[MLOperand | None]:
    """Add, then divide by the root of the mean square."""
    total = _total(context, x, skip, bias)
    y, inverse = _scaled_root_mean_square(context, total, gamma, total.rank - 1, epsilon)
    return [y, None, inverse, total]


def _total(context: ConversionContext, x: MLOperand, skip: MLOperand, bias: MLOperand | None) -> MLOperand:
    if not x.rank:
        refuse("the rank of the input", 0, "at least 1")
    total = context.add(x, skip)
    return total if bias is None else context.add(total, bias)


@rule("com.microsoft.EmbedLayerNormalization", 1)
def embed_layer_normalization(
    context: ConversionContext,
    input_ids: MLOperand,
    segment_ids: MLOperand | None,
    word_embedding: MLOperand,
    position_embedding: MLOperand,
    segment_embedding: MLOperand | None,
    gamma: MLOperand,
    beta: MLOperand,
    mask: MLOperand | None = None,
    position_ids: MLOperand | None = None,
    *,
    epsilon: float = LAYER_EPSILON,
    mask_index_type: int = 0,
) -> list[MLOperand | None]:
    """Return the sum of the embeddings of words, positions and segments, normalized; how long each sample's mask is."""
    for name, item in (("input_ids", input_ids), ("position_embedding", position_embedding)):
        check_rank(f"input {name}", item, 2)
    length = input_ids.shape[1]
    if position_ids is None:
        positions = context.slice(position_embedding, [0, 0], [length, position_embedding.shape[1]])
    else:
        positions = context.gather(position_embedding, position_ids, axis=0)
    total = context.add(context.gather(word_embedding, input_ids, axis=0), positions)
    if segment_ids is not None and segment_embedding is None:
        refuse("input segment_embedding", "absent", "given, where segment_ids are")
    if segment_embedding is not None:  # without ids all words are of the first segment
        ids = context.constant(np.zeros([1, 1], np.int32)) if segment_ids is None else segment_ids
        total = context.add(total, context.gather(segment_embedding, ids, axis=0))
    y = context.layer_normalization(total, scale=gamma, bias=beta, axes=[total.rank - 1], epsilon=epsilon)
    if mask is not None:
        check_rank("input mask", mask, 2)
        lengths = context.reduce_sum(mask, axes=[1])
    else:
        lengths = context.constant(np.zeros(input_ids.shape[:1], np.int32))
    return [y, lengths, total]
