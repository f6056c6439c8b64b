"""Normalization by given or computed moments."""

from collections.abc import Sequence

from webnn_py.core.decompositions.common import number, widened
from webnn_py.core.operators.methods import Builder, OperatorMethods
from webnn_py.core.operators.normalization import layer_axes
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.windows import InputLayout, image_axes


@widened
def batch_normalization(
    builder: Builder,
    input: MLOperand,
    mean: MLOperand,
    variance: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> MLOperand:
    shape = _sizes_at(input, [axis])
    centered = builder.sub(input, builder.reshape(mean, shape))
    return _normalized(builder, centered, builder.reshape(variance, shape), epsilon, scale, bias, shape)


@widened
def instance_normalization(
    builder: Builder,
    input: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    epsilon: float = 1e-5,
    layout: InputLayout = "nchw",
) -> MLOperand:
    _, channels, height, width = image_axes(layout)
    _, centered, variance = moments(builder, input, [height, width])
    return _normalized(builder, centered, variance, epsilon, scale, bias, _sizes_at(input, [channels]))


@widened
def layer_normalization(
    builder: Builder,
    input: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    axes: Sequence[int] | None = None,
    epsilon: float = 1e-5,
) -> MLOperand:
    reduced = layer_axes(axes, input.rank)
    ascending = sorted(range(len(reduced)), key=lambda index: reduced[index])
    scale, bias = (
        builder.transpose(operand, permutation=ascending) if operand is not None and operand.rank > 1 else operand
        for operand in (scale, bias)
    )
    _, centered, variance = moments(builder, input, reduced)
    return _normalized(builder, centered, variance, epsilon, scale, bias, _sizes_at(input, reduced))


def _sizes_at(input: MLOperand, axes: Sequence[int]) -> list[int]:
    """Return the input's shape, but 1 at all other axes."""
    return [size if axis in axes else 1 for axis, size in enumerate(input.shape)]


def moments(builder: OperatorMethods, input: MLOperand, axes: Sequence[int]) -> tuple[MLOperand, MLOperand, MLOperand]:
    """Return the mean over axes, the input less that, and the variance."""
    mean = builder.reduce_mean(input, axes=axes, keep_dimensions=True)
    centered = builder.sub(input, mean)
    return mean, centered, builder.reduce_mean(builder.mul(centered, centered), axes=axes, keep_dimensions=True)


def _normalized(
    builder: Builder,
    centered: MLOperand,
    variance: MLOperand,
    epsilon: float,
    scale: MLOperand | None,
    bias: MLOperand | None,
    shape: Sequence[int],
) -> MLOperand:
    """Divide by the deviation; then scale and bias, in the shape in which they broadcast."""
    deviation = builder.sqrt(builder.add(variance, number(builder, epsilon, variance)))
    result = builder.div(centered, deviation)
    if scale is not None:
        result = builder.mul(result, builder.reshape(scale, shape))
    if bias is not None:
        result = builder.add(result, builder.reshape(bias, shape))
    return result
