"""Classifiers of ONNX's classical machine learning: scores, and the label of the best class."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.operators.classical import LINEAR_MODEL, Transform
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


def floats_of(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return an input in float32."""
    return context.cast(x, "float32")


def rows_of(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return an input as rows of features in float32; one dimension is one row."""
    if not 1 <= x.rank <= 2:
        refuse("the rank of the input", x.rank, "1 or 2")
    floats = floats_of(context, x)
    return context.reshape(floats, [1, *x.shape]) if x.rank == 1 else floats


def labels_of(context: ConversionContext, count: int, ints: Sequence[int] | None) -> NDArray[np.integer[Any]]:
    """Return the labels of the classes; stand-ins where the output of labels is not wanted.

    Raises:
        Refused: it is wanted, and the labels are strings.
    """
    if not context.wanted[0]:
        return np.arange(count, dtype=np.int32)
    if not ints:
        raise RefusedWithWayOut(
            "its labels are strings, which WebNN lacks",
            "leave the output of labels out, by outputs; the scores have a column for each",
        )
    return np.array(ints, np.int64)


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
) -> tuple[MLOperand, MLOperand]:
    """Multiply by the coefficients of each class, and add its intercept; the first of two classes may be absent."""
    count = classes_of(classlabels_ints, classlabels_strings)
    if count == 1:
        refuse("the number of labels", 1, "2 or more")
    rows, weights, added = rows_of(context, x), np.array(coefficients or (), np.float32), tuple(intercepts or ())
    features = rows.shape[1]
    if len(added) != count and (len(added), count) != (1, 2):
        refuse("the length of attribute intercepts", len(added), f"{count}, one for each label, or 1 for two")
    needed = len(added) * features
    if weights.size < needed:
        refuse("the length of attribute coefficients", weights.size, f"{len(added)} · {features}, one for each feature")
    operands: dict[str, Value] = {
        "input": rows,
        "coefficients": weights[:needed].reshape(len(added), features),  # onnxruntime passes over what is left
        "intercepts": np.array(added, np.float32),
        "labels": labels_of(context, count, classlabels_ints),
    }
    scores, labels = context.composite(LINEAR_MODEL, operands, post_transform=post_transform)
    return labels, scores


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
