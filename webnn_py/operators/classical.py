"""Operators of classical machine learning: linear models and normalization, as one node or in other operators.

:mod:`~webnn_py.operators.tree_ensembles` has the same transforms and labels of scores.
"""

from __future__ import annotations

from typing import Any, Final, Literal, cast

import numpy as np
import numpy.typing as npt

from webnn_py.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.operators.declaration import Operator
from webnn_py.operators.decomposing.common import number
from webnn_py.operators.limits import LimitsRow, limit
from webnn_py.operators.methods import Builder
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import check_shape, output, refuse

Array = npt.NDArray[Any]

NEXT_TO_NOTHING: Final = 1e-7
"""Scores up to this have no part in SOFTMAX_ZERO; onnxruntime's bound."""

Transform = Literal["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
"""A function that is applied to the scores of each row."""

ROWS: Final = limit(("float32",), rank=2)
NUMBERS: Final = limit(("float32",), rank=1)
LABELS: Final = limit(("int64", "int32"), rank=1)

SCORES: Final[LimitsRow] = {"output0": ROWS, "output1": LABELS}


def scores_and_labels(
    input: MLOperand, columns: int, intercepts: MLOperand | None, labels: MLOperand | None, name: str
) -> list[MLOperandDescriptor]:
    """Return the descriptors of the scores of each row, a column for each label, and of the best labels.

    Args:
        input: [rows, features].
        columns: the scores that are computed; the first of two labels may lack one.
        intercepts: the numbers that are added to these, if any.
        labels: the labels of the classes; None for a regression, whose only output is the scores.
        name: what the intercepts are called.
    """
    if intercepts is not None:
        check_shape(name, intercepts, [columns])
    rows = input.shape[0]
    if labels is None:
        return [output("float32", (rows, columns))]
    classes = 2 if columns == 1 else columns
    check_shape("labels", labels, [classes])
    return [output("float32", (rows, classes)), output(labels.data_type, (rows,))]


def constant(builder: Builder, array: Array) -> MLOperand:
    """Return an array as a constant."""
    data_type = cast("MLOperandDataType", array.dtype.name)
    return builder.constant(array.tobytes(), data_type=data_type, shape=array.shape)


def transformed(builder: Builder, scores: MLOperand, post_transform: Transform) -> MLOperand:
    """Return scores after ``post_transform``."""
    if post_transform == "LOGISTIC":
        return builder.sigmoid(scores)
    if post_transform == "SOFTMAX":
        return builder.softmax(scores, 1)
    if post_transform == "NONE":
        return scores
    greatest = builder.reduce_max(scores, axes=[1], keep_dimensions=True)
    powers = builder.exp(builder.sub(scores, greatest))
    takes_part = builder.greater(builder.abs(scores), number(builder, NEXT_TO_NOTHING, scores))
    powers = builder.where(takes_part, powers, number(builder, 0, scores))
    return builder.div(powers, builder.reduce_sum(powers, axes=[1], keep_dimensions=True))


def both_sides(builder: Builder, score: MLOperand, post_transform: Transform, *, is_probability: bool) -> MLOperand:
    """Return the scores of two classes from that of the second; softmax is left out, as in onnxruntime."""
    if post_transform == "LOGISTIC":
        return builder.sigmoid(builder.concat([builder.neg(score), score], 1))
    whole = number(builder, 1 if is_probability else 0, score)
    return builder.concat([builder.sub(whole, score), score], 1)


def label_of_two(builder: Builder, score: MLOperand, threshold: float, labels: Array) -> MLOperand:
    """Return the label of one of two classes, by a column of scores of the second."""
    above = builder.greater(builder.reshape(score, [score.shape[0]]), number(builder, threshold, score))
    first, second = (constant(builder, label) for label in labels)
    return builder.where(above, second, first)


def label_of(builder: Builder, scores: MLOperand, labels: Array) -> MLOperand:
    """Return the label of the greatest score of each row."""
    table = constant(builder, labels)
    if np.array_equal(labels, np.arange(len(labels))):  # as scikit-learn's usually are
        return builder.arg_max(scores, 1, output_data_type=table.data_type)
    return builder.gather(table, builder.arg_max(scores, 1))


def linear_model(
    input: MLOperand,
    coefficients: MLOperand,
    *,
    intercepts: MLOperand | None = None,
    labels: MLOperand | None = None,
    post_transform: Transform,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Return scores, which are products with coefficients, and the label of the class with the greatest one.

    All operands but ``input`` are constants.

    Args:
        input: [rows, features].
        coefficients: [scores, features].
        intercepts: the numbers that are added to the scores, [scores].
        labels: those of the classes, [classes]; None for a regression. Where there is one score, it is that of the
            second of two classes.
        post_transform: the function that is then applied to the scores.
        label: the name of the node.

    Returns:
        [rows, scores or classes]; with labels, those of the rows as well, [rows].
    """
    columns = coefficients.shape[0]
    check_shape("coefficients", coefficients, [columns, input.shape[1]])
    return scores_and_labels(input, columns, intercepts, labels, "intercepts")


LINEAR_MODEL: Final = Operator(
    linear_model,
    "linearModel",
    {"input": ROWS, "coefficients": ROWS, "intercepts": NUMBERS, "labels": LABELS, **SCORES},
)


def by_product(
    builder: Builder,
    input: MLOperand,
    *,
    coefficients: Array,
    intercepts: Array | None = None,
    labels: Array | None = None,
    post_transform: Transform,
) -> list[MLOperand]:
    """Draw :func:`linear_model`, of which all but the input is given as arrays."""
    scores = builder.matmul(input, constant(builder, coefficients.T))
    if intercepts is not None:
        scores = builder.add(scores, constant(builder, intercepts))
    if labels is None:
        return [transformed(builder, scores, post_transform)]
    if len(coefficients) == 1:
        label = label_of_two(builder, scores, 0, labels)
        return [both_sides(builder, scores, post_transform, is_probability=True), label]
    return [transformed(builder, scores, post_transform), label_of(builder, scores, labels)]


def normalizer(input: MLOperand, *, norm: Literal["MAX", "L1", "L2"], label: str = "") -> list[MLOperandDescriptor]:
    """Divide rows by their greatest element or by their norm, unless that is 0.

    Args:
        input: [rows, features], or one row.
        norm: the divisor. Only L1 is one node: onnxruntime's maximum ignores NaN, and its sum of squares may overflow.
        label: the name of the node.
    """
    if norm != "L1":
        refuse("norm", norm, "L1")
    return [output("float32", input.shape)]


NORMALIZER: Final = Operator(
    normalizer, "normalizer", {name: limit(("float32",), rank=(1, 2)) for name in ("input", "output0")}
)


def by_division(builder: Builder, input: MLOperand, *, norm: Literal["MAX", "L1", "L2"]) -> list[MLOperand]:
    """Draw :func:`normalizer`."""
    norms = {"MAX": builder.reduce_max, "L1": builder.reduce_l1, "L2": builder.reduce_l2}
    divisor = norms[norm](input, axes=[input.rank - 1], keep_dimensions=True)
    nothing = builder.equal(divisor, number(builder, 0, input))
    return [builder.div(input, builder.where(nothing, number(builder, 1, input), divisor))]
