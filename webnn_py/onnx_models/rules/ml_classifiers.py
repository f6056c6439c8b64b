"""Classifiers of ONNX's classical machine learning: scores, their transforms, and the label of the best class."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

NEXT_TO_NOTHING = 1e-7
"""Scores up to this have no part in SOFTMAX_ZERO; onnxruntime's bound."""

Transform = Literal["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
"""A function that is applied to scores."""


def rows_of(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return an input as rows of features in float32; one dimension is one row."""
    if not 1 <= x.rank <= 2:
        refuse("the rank of the input", x.rank, "1 or 2")
    floats = x if x.data_type == "float32" else context.cast(x, "float32")
    return context.reshape(floats, [1, *x.shape]) if x.rank == 1 else floats


def transformed(context: ConversionContext, scores: MLOperand, post_transform: Transform) -> MLOperand:
    """Return the scores of two or more classes after ``post_transform``."""
    if post_transform == "LOGISTIC":
        return context.sigmoid(scores)
    if post_transform == "SOFTMAX":
        return context.softmax(scores, 1)
    if post_transform == "NONE":
        return scores
    greatest = context.reduce_max(scores, axes=[1], keep_dimensions=True)
    powers = context.exp(context.sub(scores, greatest))
    takes_part = context.greater(context.abs(scores), context.number(NEXT_TO_NOTHING, scores))
    powers = context.where(takes_part, powers, context.number(0, scores))
    return context.div(powers, context.reduce_sum(powers, axes=[1], keep_dimensions=True))


def both_sides(
    context: ConversionContext, score: MLOperand, post_transform: Transform, *, is_probability: bool
) -> MLOperand:
    """Return the scores of two classes from that of the second; softmax is left out, as in onnxruntime."""
    if post_transform == "LOGISTIC":
        return context.sigmoid(context.concat([context.neg(score), score], 1))
    whole = context.number(1 if is_probability else 0, score)
    return context.concat([context.sub(whole, score), score], 1)


def label_of_two(
    context: ConversionContext, score: MLOperand, threshold: float, ints: Sequence[int], strings: Sequence[str]
) -> MLOperand | None:
    """Return the label of one of two classes, by a column of scores of the second; None if it is not wanted.

    Raises:
        Refused: it is wanted, and a string.
    """
    if not _are_wanted(context, strings):
        return None
    above = context.greater(context.reshape(score, [score.shape[0]]), context.number(threshold, score))
    first, second = (context.constant(np.array(ints[place], np.int64)) for place in (0, -1))
    return context.where(above, second, first)


def label_of(
    context: ConversionContext, scores: MLOperand, ints: Sequence[int], strings: Sequence[str]
) -> MLOperand | None:
    """Return the label of the greatest score of each row; None if the output of labels is not wanted.

    Raises:
        Refused: it is wanted, and the labels are strings.
    """
    if not _are_wanted(context, strings):
        return None
    if [*ints] == [*range(len(ints))]:  # as scikit-learn's usually are
        return context.arg_max(scores, 1, output_data_type="int64")
    return context.gather(context.constant(np.array(ints, np.int64)), context.arg_max(scores, 1))


def _are_wanted(context: ConversionContext, strings: Sequence[str]) -> bool:
    """Return whether labels are."""
    if strings and context.wanted[0]:
        raise RefusedWithWayOut(
            "its labels are strings, which WebNN lacks",
            "leave the output of labels out, by outputs; the scores have a column for each",
        )
    return context.wanted[0]


def classes_of(ints: Sequence[int] | None, strings: Sequence[str] | None) -> int:
    """Return the number of labels."""
    if (ints and strings) or not (ints or strings):
        refuse("the labels", "two kinds" if ints else "none", "either integers or strings")
    return len(ints or strings or ())


@rule("ai.onnx.ml.LinearClassifier", 1)
def linear_classifier(
    context: ConversionContext,
    x: MLOperand,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: Transform = "NONE",
) -> tuple[MLOperand | None, MLOperand]:
    """Multiply by the coefficients of each class, and add its intercept; the first of two classes may be absent."""
    count = classes_of(classlabels_ints, classlabels_strings)
    rows, weights, added = rows_of(context, x), np.array(coefficients or (), np.float32), tuple(intercepts or ())
    features = rows.shape[1]
    if len(added) != count and (len(added), count) != (1, 2):
        refuse("the length of attribute intercepts", len(added), f"{count}, one for each label, or 1 for two")
    needed = len(added) * features
    if weights.size < needed:
        refuse("the length of attribute coefficients", weights.size, f"{len(added)} · {features}, one for each feature")
    weights = weights[:needed].reshape(len(added), features)  # onnxruntime passes over what is left
    product = context.matmul(rows, context.constant(np.ascontiguousarray(weights.T)))
    scores = context.add(product, context.constant(np.array(added, np.float32)))
    labels = classlabels_ints or (), classlabels_strings or ()
    if len(added) > 1:
        return label_of(context, scores, *labels), transformed(context, scores, post_transform)
    label = label_of_two(context, scores, 0, *labels)
    return label, both_sides(context, scores, post_transform, is_probability=True)


@rule("ai.onnx.ml.ZipMap", 1)
def zip_map(
    context: ConversionContext,
    x: MLOperand,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> MLOperand:
    """Return the scores: a column for each label, in order, where ONNX makes a map of each row."""
    count = classes_of(classlabels_int64s, classlabels_strings)
    if not x.rank or x.shape[-1] != count:
        refuse("the shape of the input", list(x.shape), f"rows of {count}, one for each label")
    return x
