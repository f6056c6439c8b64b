"""Normalization operators (sections "batchNormalization", "instanceNormalization" and "layerNormalization")."""

from collections.abc import Sequence

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.limits import FLOATS, MAX_RANK, LimitsRow, limit, of_ranks
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_axes, check_axis, check_shape, refuse, same
from webnn_py.core.operators.windows import InputLayout, image_shape

BATCH: LimitsRow = {
    "input": limit(FLOATS, rank=(1, MAX_RANK), required_rank=(3, 5)),
    "mean": limit(FLOATS, rank=1, type_of="input"),
    "variance": limit(FLOATS, rank=1, type_of="input"),
    "scale": limit(FLOATS, rank=1, type_of="input"),
    "bias": limit(FLOATS, rank=1, type_of="input"),
    "output": limit(FLOATS, rank=(1, MAX_RANK), required_rank=(3, 5), type_of="input", rank_of="input"),
}

INSTANCE = of_ranks(FLOATS, input=4, scale=1, bias=1, output=4)

LAYER: LimitsRow = {
    "input": limit(FLOATS),
    "scale": limit(FLOATS, type_of="input"),
    "bias": limit(FLOATS, type_of="input"),
    "output": limit(FLOATS, type_of="input", rank_of="input"),
}


def layer_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Return the axes that layer normalization reduces: all but the first when not given."""
    # spec: layerNormalization 4
    return tuple(range(1, rank)) if axes is None else tuple(axes)


@operator("batchNormalization", BATCH, propagates_nan=True)
def batch_normalization(
    input: MLOperand,
    mean: MLOperand,
    variance: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
    label: str = "",
) -> MLOperandDescriptor:
    """Normalize with means and variances that are given: (input - mean) / sqrt(variance + epsilon) · scale + bias.

    Args:
        input: the tensor to normalize.
        mean: one value for each index of ``axis``.
        variance: as ``mean``.
        scale: as ``mean``; 1 when absent.
        bias: as ``mean``; 0 when absent.
        axis: the axis of the features, 1 being the channels of the layout "nchw".
        epsilon: added to the variance; cast to the data type of ``input``.

    Returns:
        The normalized elements, of the shape of ``input``.
    """
    # spec: batchNormalization 4
    check_axis(axis, input)
    features = [input.shape[axis]]
    # spec: batchNormalization 6
    check_shape("mean", mean, features)
    # spec: batchNormalization 8
    check_shape("variance", variance, features)
    # spec: batchNormalization 10.2
    check_shape("scale", scale, features)
    # spec: batchNormalization 11.2
    check_shape("bias", bias, features)
    return same(input)


@operator("instanceNormalization", INSTANCE, propagates_nan=True)
def instance_normalization(
    input: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    epsilon: float = 1e-5,
    layout: InputLayout = "nchw",
    label: str = "",
) -> MLOperandDescriptor:
    """Normalize each channel of each sample by its own mean and variance over height and width.

    (input - mean) / sqrt(variance + epsilon) · scale + bias, with the variance of the whole population.

    Args:
        input: the images to normalize.
        scale: one value for each channel; 1 when absent.
        bias: one value for each channel; 0 when absent.
        epsilon: added to the variance; cast to the data type of ``input``.
        layout: the order of the input's axes: batch, channels, height, width or batch, height, width, channels.

    Returns:
        The normalized elements, of the shape of ``input``.
    """
    _, channels, _, _ = image_shape(input.shape, layout)
    # spec: instanceNormalization 7.2
    check_shape("scale", scale, [channels])
    # spec: instanceNormalization 8.2
    check_shape("bias", bias, [channels])
    return same(input)


@operator("layerNormalization", LAYER, propagates_nan=True)
def layer_normalization(
    input: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    axes: Sequence[int] | None = None,
    epsilon: float = 1e-5,
    label: str = "",
) -> MLOperandDescriptor:
    """Normalize by the mean and the variance over ``axes``.

    (input - mean) / sqrt(variance + epsilon) · scale + bias, with the variance of the whole population.

    Args:
        input: the tensor to normalize.
        scale: its dimensions are those of the input that ``axes`` name, in the order of ``axes``; 1 when absent.
        bias: as ``scale``; 0 when absent.
        axes: what the mean and the variance are taken over, in any order; all axes but the first when absent. With
            none, each element is its own mean, and the output is the bias.
        epsilon: added to the variance; cast to the data type of ``input``.

    Returns:
        The normalized elements, of the shape of ``input``.
    """
    if axes is not None:
        # spec: layerNormalization 5, 9.2
        check_axes(axes, input)
    reduced = layer_axes(axes, input.rank)
    parameters = {"scale": scale, "bias": bias}
    given = {name: operand for name, operand in parameters.items() if operand is not None}
    for name, operand in given.items():
        # spec: layerNormalization 7.2, 8.2
        if operand.rank != len(reduced):
            refuse(f"the rank of {name}", operand.rank, f"the number of axes, {len(reduced)}")
    for index, axis in enumerate(reduced):
        for name, operand in given.items():
            # spec: layerNormalization 9.4.1, 9.5.1
            if operand.shape[index] != input.shape[axis]:
                refuse(
                    f"dimension {index} of {name}",
                    operand.shape[index],
                    f"dimension {axis} of the input, {input.shape[axis]}",
                )
    return same(input)
