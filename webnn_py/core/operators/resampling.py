"""Resampling (section "resample2d")."""

import math
from collections.abc import Sequence
from typing import Final, Literal

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.limits import FLOATS, DataTypes, LimitsRow, input_and_output
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_axes, check_length, check_positive, output, refuse

InterpolationMode = Literal["nearest-neighbor", "linear"]

RESAMPLED: Final[DataTypes] = ("float32", "float16", "uint8", "int8")

RESAMPLE: LimitsRow = input_and_output(RESAMPLED, required=FLOATS, rank=4)


@operator("resample2d", RESAMPLE, averages=True)
def resample2d(
    input: MLOperand,
    *,
    mode: InterpolationMode = "nearest-neighbor",
    scales: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    label: str = "",
) -> MLOperandDescriptor:
    """Stretch or shrink two axes.

    Elements are taken for points in the middle of their cells. An output element is the nearest input element, the
    lower one of two equally near ones; or the linear interpolation of the two, along each axis, that it lies
    between. Beyond the outermost points these repeat. Integers interpolate in float32 and round to the nearest.

    Args:
        input: the tensor to resample.
        mode: "nearest-neighbor" or "linear".
        scales: by how much to stretch each axis; the new sizes are rounded down; [1, 1] when absent.
        sizes: the new size of each axis, in place of ``scales``.
        axes: the two axes, each once, in the order of ``scales`` and ``sizes``; [2, 3] when absent.

    Returns:
        The resampled tensor: the shape of ``input``, but along ``axes`` the new sizes.
    """
    # spec: resample2d 5-6
    if scales is not None:
        check_length("scales", scales, 2)
        if any(scale <= 0 for scale in scales):
            refuse("scales", tuple(scales), "greater than 0")
    # spec: resample2d 7
    if sizes is not None:
        check_length("sizes", sizes, 2)
        check_positive("sizes", sizes)
    # spec: resample2d 8
    axes = (2, 3) if axes is None else axes
    check_length("axes", axes, 2)
    # spec: resample2d 9
    check_axes(axes, input)
    shape = list(input.shape)
    for axis, scale, size in zip(axes, scales or (1.0, 1.0), sizes or (None, None), strict=True):
        # spec: resample2d 10.3
        shape[axis] = math.floor(shape[axis] * scale) if size is None else size
        # spec: resample2d 10.3.3
        if shape[axis] < 1:
            refuse(f"the new size of axis {axis}", shape[axis], "at least 1")
    return output(input.data_type, shape)
