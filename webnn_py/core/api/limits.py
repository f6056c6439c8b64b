"""The data types and ranks that operators accept in a context: declared limits, reduced to those of the backend."""

from functools import cache
from typing import Any, Final

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import Capabilities
from webnn_py.core.operators.declaration import Arguments, Operator
from webnn_py.core.operators.limits import DataTypes, LimitsRow, RankRange, TensorLimits
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.core.operators.rules import Refused, refuse

QUANTIZED_ROWS: Final = {
    ("dequantize_linear", "input"),
    ("dequantize_linear", "zero_point"),
    ("quantize_linear", "zero_point"),
    ("quantize_linear", "output"),
}
"""Operands and outputs that may have four bits, where an extension adds those."""


@cache
def limits_of(operator: Operator[..., Any], capabilities: Capabilities) -> LimitsRow:
    """Return the operator's limits, reduced to those that the backend can run, by itself or expanded."""
    from webnn_py.core.device.compiling.expansion import limits_in  # noqa: PLC0415 - imported when it is used

    return {
        name: attrs.evolve(row, data_types=row.data_types + _proposed(operator, name, capabilities))
        for name, row in limits_in(operator, capabilities).items()
    }


def _proposed(operator: Operator[..., Any], row: str, capabilities: Capabilities) -> DataTypes:
    """Return the data types of proposals that a row of the limits has in addition to the declared ones."""
    return capabilities.packed if (operator.name, row) in QUANTIZED_ROWS else ()


def check_operands(
    operator: Operator[..., Any], rows: LimitsRow, arguments: Arguments, capabilities: Capabilities
) -> None:
    """Refuse an operand whose data type or rank is outside the limits.

    Args:
        operator: the operator.
        rows: its limits, as :func:`limits_of` returns them.
        arguments: its arguments; every operator has an operand at least.
        capabilities: what the device can do.

    Raises:
        Refused: with the operand, what it is, and what is allowed; or that the device cannot run the operator.
    """
    for name, shown, operand in arguments.each_operand():
        row, descriptor = rows[name], operand._descriptor
        is_inside = descriptor.data_type in row.data_types and len(descriptor.shape) in row.ranks
        if is_inside and row.type_of is None is row.rank_of:  # as nearly all
            continue
        if operand.data_type not in row.data_types and not any(row.data_types for row in rows.values()):
            raise Refused(f"this device cannot run it: {_why_not(operator, capabilities)}")
        _check_operand(shown, operand, row, arguments)


def _why_not(operator: Operator[..., Any], capabilities: Capabilities) -> str:
    """Word why a device runs no data type of an operator, and which operators it would have to claim."""
    from webnn_py.core.device.compiling.expansion import missing_primitives  # noqa: PLC0415 - imported when it is used

    missing = missing_primitives(operator, capabilities)
    if not missing:
        return "it has none of the operator's data types"
    if missing == (operator.name,):
        return f"it does not claim {operator.name}, which has no decomposition into other operators"
    return f"it claims neither {operator.name} nor all that it is expanded into; missing: {', '.join(missing)}"


def _check_operand(shown: str, operand: MLOperand, row: TensorLimits, arguments: Arguments) -> None:
    # spec: * data type
    if operand.data_type not in row.data_types:
        refuse(f"the data type of {shown}", operand.data_type, " or ".join(row.data_types) or "unused: not supported")
    # spec: * rank
    if operand.rank not in row.ranks:
        refuse(f"the rank of {shown} {list(operand.shape)}", operand.rank, str(row.ranks))
    if row.type_of is not None:
        other = arguments.operand(row.type_of)
        # spec: * data type
        if operand.data_type != other.data_type:
            refuse(f"the data type of {shown}", operand.data_type, f"{other.data_type}, that of {row.type_of}")
    if row.rank_of is not None:
        other = arguments.operand(row.rank_of)
        # spec: * rank
        if operand.rank != other.rank:
            refuse(f"the rank of {shown} {list(operand.shape)}", operand.rank, f"{other.rank}, that of {row.rank_of}")


def check_outputs(operator: Operator[..., Any], rows: LimitsRow, outputs: list[MLOperandDescriptor]) -> None:
    """Refuse outputs outside the limits; their dimensions are checked by the caller.

    Raises:
        Refused: with the output, what it would be, and what is allowed.
    """
    names = operator.output_limits
    for index, descriptor in enumerate(outputs):
        row = rows[names[index] if len(names) > 1 else names[0]]
        if descriptor.data_type not in row.data_types:
            refuse("the data type of the output", descriptor.data_type, " or ".join(row.data_types))
        if descriptor.rank not in row.ranks:
            refuse(f"the rank of the output {list(descriptor.shape)}", descriptor.rank, str(row.ranks))


def op_support_limits(capabilities: Capabilities) -> dict[str, Any]:
    """Return the spec's ``MLOpSupportLimits``, with Python's names: a fresh plain structure at every call."""
    ranks, data_types = RankRange(0, capabilities.max_rank), capabilities.data_types
    packed_too = data_types + capabilities.packed
    limits: dict[str, Any] = {
        "preferred_input_layout": capabilities.preferred_input_layout,
        "max_tensor_byte_length": capabilities.max_byte_length,
        "input": _plain(data_types, ranks),
        "constant": _plain(packed_too, ranks),
        "output": _plain(packed_too, ranks),
    }
    for name, operator in OPERATORS.items():
        rows = limits_of(operator, capabilities)
        limits[name] = {operand: _plain(row.data_types, row.ranks) for operand, row in rows.items()}
    return limits


def _plain(data_types: DataTypes, ranks: RankRange) -> dict[str, Any]:
    """Return the spec's ``MLTensorLimits``."""
    return {"data_types": list(data_types), "rank_range": {"min": ranks.min, "max": ranks.max}}
