"""Normalization operators in WGSL.

Floats are computed in f32. Variances are sums of squares of the distances from the mean, never differences of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from webnn_py.core.graph import Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators import normalization
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.normalization import layer_axes
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.windows import image_axes
from webnn_py.devices.composites.fused import RMS_NORMALIZATION
from webnn_py.devices.wgpu.codegen.reduction.combiners import (
    fold,
    inverse_root_mean_square,
    moments,
    nan_unless_finite,
    scaled_square,
)
from webnn_py.devices.wgpu.codegen.reduction.operands import StoreTarget, TensorOperand
from webnn_py.devices.wgpu.codegen.reduction.pointwise import emit_by_statistics
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows
from webnn_py.devices.wgpu.codegen.reduction.writer import RegisterRows
from webnn_py.devices.wgpu.records.element import literal
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import composite, kernels

OWN_BUFFERS: Final = 6
"""The most buffers that the last kernel binds: operand, scale, bias, the output, and two statistics between kernels."""


def _epsilon(node: Node) -> float:
    return cast_number(node.options["epsilon"], node.outputs[0].data_type)


def _given(node: Node, name: str) -> Value | None:
    value = node.operands.get(name)
    assert not isinstance(value, tuple)  # noqa: S101 - for type checkers
    return value


@composite(normalization.batch_normalization)
def batch_normalization(node: Node, builder: RewriteBuilder) -> list[Value]:
    """Element-wise operators, so that they fuse with others; what belongs to a feature folds when it is constant."""
    descriptor = node.outputs[0]
    shape = [descriptor.shape[axis] if axis == node.options["axis"] else 1 for axis in range(len(descriptor.shape))]

    def operand(name: str) -> MLOperand | None:
        value = _given(node, name)
        if value is None:
            return None
        wide = builder.operand(value)
        return wide if descriptor.data_type == "float32" else builder.cast(wide, "float32")

    def feature(value: MLOperand) -> MLOperand:
        return builder.reshape(value, shape)

    x, mean, variance, scale, bias = map(operand, ("input", "mean", "variance", "scale", "bias"))
    assert x is not None and mean is not None and variance is not None  # noqa: PT018, S101 - required operands
    deviation = builder.sqrt(builder.add(variance, builder.constant(_epsilon(node), data_type="float32")))
    factor = builder.reciprocal(deviation) if scale is None else builder.div(scale, deviation)
    result = builder.mul(builder.sub(x, feature(mean)), feature(factor))
    if bias is not None:
        result = builder.add(result, feature(bias))
    if descriptor.data_type != "float32":
        result = builder.cast(result, descriptor.data_type)
    return [builder.value(result)]


@kernels(normalization.instance_normalization, fuses="input")
def instance_normalization(node: Node, lowering: Lowering) -> None:
    """Normalize over height and width, with a scale and a bias for each channel."""
    _, channels, height, width = image_axes(node.options["layout"])
    _normalize(node, lowering, sorted((height, width)), [channels])


@kernels(normalization.layer_normalization, fuses="input")
def layer_normalization(node: Node, lowering: Lowering) -> None:
    """Normalize over the axes, with a scale and a bias along them, in their order."""
    axes = layer_axes(node.options["axes"], node.operand("input").rank)
    _normalize(node, lowering, sorted(axes), axes)


def _normalize(node: Node, lowering: Lowering, axes: Sequence[int], parameter_axes: Sequence[int]) -> None:
    rows = ReductionRows(node.operand("input").shape, tuple(axes))
    scale, bias = (_parameter(lowering, _given(node, name), rows, parameter_axes) for name in ("scale", "bias"))
    target = StoreTarget.with_epilogue(lowering, node.results[0], OWN_BUFFERS)
    epsilon = literal(_epsilon(node), "f32")
    kept = RegisterRows.of_node(node, lowering, rows, target, parameters=2)
    if kept is None:
        _normalize_long_rows(node, lowering, rows, (scale, bias), epsilon, target)
        return
    kernel, elements = kept
    count = literal(rows.count, "f32")
    sums = kernel.combine_rows("+", kernel.map(lambda _, x: x, elements, zero_beyond=True))
    means = kernel.let_each(f"{total} / {count}" for total in sums)
    distances = kernel.map(lambda output, x: f"{x} - {means[output]}", elements, zero_beyond=True)
    squares = kernel.combine_rows("+", kernel.map(lambda _, distance: f"{distance} * {distance}", distances))
    factors = kernel.let_each(
        nan_unless_finite(f"1.0 / sqrt({total} / {count} + {epsilon})", mean)
        for total, mean in zip(squares, means, strict=True)
    )
    results = kernel.map(lambda output, distance: f"{distance} * {factors[output]}", distances)
    if scale is not None:
        results = kernel.map(lambda _, result, factor: f"{result} * {factor}", results, kernel.read(scale))
    if bias is not None:
        results = kernel.map(lambda _, result, term: f"{result} + {term}", results, kernel.read(bias))
    kernel.write(results, target)


def _normalize_long_rows(
    node: Node,
    lowering: Lowering,
    rows: ReductionRows,
    parameters: tuple[TensorOperand | None, TensorOperand | None],
    epsilon: str,
    target: StoreTarget,
) -> None:
    """First the means and the variances, then the results."""
    scale, bias = parameters

    def compute(x: str, mean: str, factor: str, *parameters: str) -> str:
        rest = list(parameters)
        scaled = f"({x} - {mean}) * {factor}" + (f" * {rest.pop(0)}" if scale is not None else "")
        return f"{scaled} + {rest.pop(0)}" if bias is not None else scaled

    given = [parameter for parameter in parameters if parameter is not None]
    reduction = moments(epsilon)
    emit_by_statistics(node, lowering, rows, reduction, compute, target, count=2, label="moments", parameters=given)


def _parameter(
    lowering: Lowering, value: Value | None, rows: ReductionRows, axes: Sequence[int]
) -> TensorOperand | None:
    """Return a scale or a bias, broadcast to the input's shape."""
    if value is None:
        return None
    place = lowering.place(value)
    strides = [0] * len(rows.shape)
    for axis, stride in zip(axes, place.layout.strides, strict=True):
        strides[axis] = stride
    layout = Layout(rows.shape, tuple(strides), place.layout.offset)
    return TensorOperand(place.buffer, lowering.element(value), layout)


@kernels(RMS_NORMALIZATION, fuses="input")
def normalize_by_root_mean_square(node: Node, lowering: Lowering) -> None:
    """Divide rows by the root mean square. There is no scale here: one that follows is fused behind."""
    shape = node.operand("input").shape
    rows = ReductionRows(shape, (len(shape) - 1,))
    factor = partial(inverse_root_mean_square, count=literal(rows.count, "f32"), epsilon=literal(_epsilon(node), "f32"))
    target = StoreTarget.with_epilogue(lowering, node.results[0], 3)  # and the operand and the factors
    kept = RegisterRows.of_node(node, lowering, rows, target)
    if kept is None:
        sums = fold("f32", "+", 0, (scaled_square("({0} * {0})"),), lambda totals: factor(totals[0]))
        scaled = "{} * {}".format
        emit_by_statistics(node, lowering, rows, sums, scaled, target, count=1, label="factors")
        return
    kernel, elements = kept
    squares = kernel.map(lambda _, x: f"{x} * {x}", elements)
    totals = kernel.combine_rows("+", kernel.map(lambda _, square: scaled_square(square), squares, zero_beyond=True))
    by = kernel.let_each(map(factor, totals))
    kernel.write(kernel.map(lambda output, x: f"{x} * {by[output]}", elements), target)
