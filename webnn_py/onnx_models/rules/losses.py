"""Losses of classification."""

from typing import Literal

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.activation import log_softmax

Reduction = Literal["none", "sum", "mean"]


@rule("NegativeLogLikelihoodLoss", 12, 13, 22)
def negative_log_likelihood(
    context: ConversionContext,
    input: MLOperand,
    target: MLOperand,
    weight: MLOperand | None = None,
    *,
    ignore_index: int | None = None,
    reduction: Reduction,
) -> MLOperand:
    """Return the negated logarithm of the right class's probability; the classes are along axis 1."""
    if input.rank < 2 or (input.shape[0], *input.shape[2:]) != target.shape:
        refuse("the shape of the target", target.shape, f"that of the input {list(input.shape)} without axis 1")
    if weight is not None and weight.shape != (input.shape[1],):
        refuse("the shape of the weights", weight.shape, f"[{input.shape[1]}], one for each class")
    weights = None
    if ignore_index is not None:
        ignored = context.equal(target, context.number(ignore_index, target))
        target = context.where(ignored, context.number(0, target), target)  # any class that there is
        weights = context.cast(context.logical_not(ignored), input.data_type)
    if weight is not None:
        own = context.gather(weight, target)
        weights = own if weights is None else context.mul(own, weights)
    places = context.reshape(target, [target.shape[0], 1, *target.shape[1:]])
    loss = context.neg(context.reshape(context.gather_elements(input, places, axis=1), target.shape))
    if weights is not None:
        loss = context.mul(loss, weights)
    if reduction == "none":
        return loss
    if weights is None:
        return context.reduce_mean(loss) if reduction == "mean" else context.reduce_sum(loss)
    total = context.reduce_sum(loss)
    return context.div(total, context.reduce_sum(weights)) if reduction == "mean" else total


@rule("SoftmaxCrossEntropyLoss", 12, 13)
def softmax_cross_entropy(
    context: ConversionContext,
    scores: MLOperand,
    labels: MLOperand,
    weights: MLOperand | None = None,
    *,
    ignore_index: int | None = None,
    reduction: Reduction,
) -> list[MLOperand]:
    """Return the negative log likelihood of the softmax of the scores, and the softmax's logarithm."""
    log_probability = log_softmax(context, scores, axis=1)
    loss = negative_log_likelihood(
        context, log_probability, labels, weights, ignore_index=ignore_index, reduction=reduction
    )
    return [loss, log_probability]
