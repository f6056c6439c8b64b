"""Activation functions in WGSL. NaN is looked for by its bits: adapters' own comparisons may drop it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webnn_py.core.graph import Node
from webnn_py.core.operators import activation
from webnn_py.core.operators.activation import clamp_bounds
from webnn_py.core.operators.casting import cast_number
from webnn_py.devices.wgpu.codegen.expressions import extreme
from webnn_py.devices.wgpu.codegen.reduction.combiners import log_sum_exp, nan_unless_finite
from webnn_py.devices.wgpu.codegen.reduction.operands import StoreTarget
from webnn_py.devices.wgpu.codegen.reduction.pointwise import emit_by_statistics
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows
from webnn_py.devices.wgpu.codegen.reduction.writer import RegisterRows
from webnn_py.devices.wgpu.records.element import compute_type, literal
from webnn_py.devices.wgpu.records.graph_queries import sign_of_zero
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import expression, expressions, kernels


def number(node: Node, name: str) -> float:
    """Return a number that is an option, cast to the operand's data type."""
    return cast_number(node.options[name], node.outputs[0].data_type)


def option(node: Node, name: str) -> str:
    """The same as a literal."""
    return literal(number(node, name), "f32")


def positive(x: str) -> str:
    """max(0, x), and NaN for NaN."""
    return f"ramp({x})"


def negative(x: str) -> str:
    """min(0, x), and NaN for NaN."""
    return f"minimum({x}, 0.0)"


expressions(
    {
        activation.gelu: "gelu_f32({0})",
        # Where the factor is 0, x is bounded, lest 0 · -Infinity be NaN.
        activation.hard_swish: "minimum(maximum({0} + 3.0, 0.0), 6.0) / 6.0 * maximum({0}, -3.0)",
        activation.sigmoid: "sigmoid_f32({0})",
        activation.softplus: "ramp({0}) + log1p_of_unit(exp_f32(-abs({0})))",
        # From 1e9 on it is 1 or -1; the divisor of infinity would be infinity.
        activation.softsign: "select({0} / (1.0 + abs({0})), f32(sign(order({0}))), abs({0}) > 1e9)",
        activation.tanh: "tanh_f32({0})",
    }
)


@expression(activation.clamp)
def clamp(node: Node, x: str) -> str:
    data_type = node.outputs[0].data_type
    kind = compute_type(data_type)
    options = node.options["min_value"], node.options["max_value"]
    lowest, highest = (literal(bound, kind) for bound in clamp_bounds(data_type, *options))
    return extreme("min", kind, extreme("max", kind, x, lowest), highest)


@expression(activation.elu)
def elu(node: Node, x: str) -> str:
    return f"{positive(x)} + {option(node, 'alpha')} * expm1_of_negative({negative(x)})"


@expression(activation.hard_sigmoid)
def hard_sigmoid(node: Node, x: str) -> str:
    return f"minimum(maximum({straight_line(node, x)}, 0.0), 1.0)"


@expression(activation.linear)
def straight_line(node: Node, x: str) -> str:
    """Return the line alpha · x + beta."""
    sloping = f"{option(node, 'alpha')} * {x}" if number(node, "alpha") else f"zero_times({x})"
    return f"{sloping} + {option(node, 'beta')}"


@expression(activation.leaky_relu)
def leaky_relu(node: Node, x: str) -> str:
    if not number(node, "alpha"):
        return positive(x)
    return f"select({option(node, 'alpha')} * {x}, {x}, order({x}) >= 0i)"


@expression(activation.prelu)
def prelu(node: Node, x: str, slope: str) -> str:
    kind = compute_type(node.outputs[0].data_type)
    if kind == "f32":
        has_slope = sign_of_zero(node.value("slope")) is None
        return f"{positive(x)} + {f'{slope} * {negative(x)}' if has_slope else f'zero_times({negative(x)})'}"
    zero = literal(0, kind)
    return f"{extreme('max', kind, x, zero)} + {slope} * {extreme('min', kind, x, zero)}"


@expression(activation.relu)
def relu(node: Node, x: str) -> str:
    kind = compute_type(node.outputs[0].data_type)
    return positive(x) if kind == "f32" else extreme("max", kind, x, literal(0, kind))


OWN_BUFFERS: Final = 4
"""The most buffers that the last kernel binds: the operand, the output, and two statistics between kernels."""


@kernels(activation.softmax, fuses="input")
def softmax(node: Node, lowering: Lowering) -> None:
    """Exponentials less the highest element, divided by their sum."""
    rows = ReductionRows(node.value("input").descriptor.shape, (node.options["axis"],))
    target = StoreTarget.with_epilogue(lowering, node.results[0], OWN_BUFFERS)
    kept = RegisterRows.of_node(node, lowering, rows, target)
    if kept is None:
        _softmax_of_long_rows(node, lowering, rows, target)
        return
    kernel, elements = kept
    highest = kernel.combine_rows("max", elements)
    powers = kernel.map(lambda output, x: f"exp_f32({x} - {highest[output]})", elements, zero_beyond=True)
    totals = kernel.combine_rows("+", powers)
    inverses = kernel.let_each(
        [nan_unless_finite(f"1.0 / {total}", top) for total, top in zip(totals, highest, strict=True)]
    )
    kernel.write(kernel.map(lambda output, power: f"{power} * {inverses[output]}", powers), target)


def _softmax_of_long_rows(node: Node, lowering: Lowering, rows: ReductionRows, target: StoreTarget) -> None:
    """First the highest elements and the sums, then the results."""

    def finish(variables: Sequence[str]) -> list[str]:
        top, total = variables
        return [top, nan_unless_finite(f"1.0 / {total}", total)]  # one infinite element makes all of the row NaN

    def compute(x: str, top: str, inverse: str) -> str:
        return f"exp_f32({x} - {top}) * {inverse}"

    emit_by_statistics(node, lowering, rows, log_sum_exp(finish), compute, target, count=2, label="sums")
