"""Arithmetic operators of ONNX's classical machine learning, which pipelines have around a network."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.ml_classifiers import floats_of, rows_of
from webnn_py.operators.classical import LINEAR_MODEL, NORMALIZER
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


@rule("ai.onnx.ml.Scaler", 1)
def scale(
    context: ConversionContext,
    x: MLOperand,
    *,
    offset: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
) -> MLOperand:
    """Return (x - offset) · scale, for each feature along the last axis, or the same for all."""
    features = x.shape[-1] if x.rank else 1
    given = {"offset": offset or (0.0,), "scale": scale or (1.0,)}
    for name, values in given.items():
        if len(values) not in (1, features):
            refuse(f"the length of attribute {name}", len(values), f"1 or {features}, as the input {list(x.shape)} has")
    centred = context.sub(floats_of(context, x), _constant(context, given["offset"]))
    return context.mul(centred, _constant(context, given["scale"]))


def _constant(context: ConversionContext, values: Sequence[float]) -> MLOperand:
    array = np.array(values, np.float32)
    return context.constant(array if len(values) > 1 else array.reshape([]))


@rule("ai.onnx.ml.Normalizer", 1)
def normalize(context: ConversionContext, x: MLOperand, *, norm: Literal["MAX", "L1", "L2"] = "MAX") -> MLOperand:
    """Divide rows by their greatest element or by their norm; rows of zeros stay, as in onnxruntime."""
    if not 1 <= x.rank <= 2:
        refuse("the rank of the input", x.rank, "1 or 2")
    return context.composite(NORMALIZER, {"input": floats_of(context, x)}, norm=norm)[0]


@rule("ai.onnx.ml.LinearRegressor", 1)
def linear_regressor(
    context: ConversionContext,
    x: MLOperand,
    *,
    coefficients: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    post_transform: Literal["NONE"] = "NONE",
    targets: int = 1,
) -> MLOperand:
    """Return a product with the coefficients of each target, and its intercept."""
    rows, weights = rows_of(context, x), np.array(coefficients or (), np.float32)
    features = rows.shape[1]
    if targets < 1 or weights.size != targets * features:
        refuse("the length of attribute coefficients", weights.size, f"{targets} · {features}, one for each feature")
    operands: dict[str, Value] = {"input": rows, "coefficients": weights.reshape(targets, features)}
    if intercepts:
        if len(intercepts) != targets:
            refuse("the length of attribute intercepts", len(intercepts), f"{targets}, one for each target")
        operands["intercepts"] = np.array(intercepts, np.float32)
    return context.composite(LINEAR_MODEL, operands, post_transform=post_transform)[0]


@rule("ai.onnx.ml.Binarizer", 1)
def binarize(context: ConversionContext, x: MLOperand, *, threshold: float = 0.0) -> MLOperand:
    """Return 1 where an element is above the threshold, else 0."""
    above = context.greater(context.cast(x, "float32"), context.constant(np.array(threshold, np.float32)))
    return context.cast(above, x.data_type)


@rule("ai.onnx.ml.ArrayFeatureExtractor", 1)
def take_features(context: ConversionContext, x: MLOperand, y: MLOperand) -> MLOperand:
    """Some elements of each row."""
    if not x.rank:
        refuse("the rank of input X", 0, "at least 1")
    rows = context.reshape(x, [1, *x.shape]) if x.rank == 1 else x
    return context.gather(rows, context.reshape(y, [int(np.prod(y.shape))]), axis=rows.rank - 1)
