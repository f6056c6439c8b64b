"""The proposal "low-precision": what its arguments say that operators of the specification do not have.

See docs/proposals/low_precision.md. Nothing here is used unless ``open_ml(experimental={"low-precision"})`` asks for
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

import attrs
import numpy as np

from webnn_py.descriptors import FLOAT8, LOW_PRECISION, SYNONYMS, ProposedDataType, converted, size_or_axis
from webnn_py.graph import Constant, Value
from webnn_py.operators import conversion
from webnn_py.operators.declaration import Arguments, Operator
from webnn_py.operators.idl import enumeration
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused, refuse

SCHEMES: Final = ("affine", "symmetric-float", "blockwise-float")
"""The explainer's ``MLQuantizationScheme``."""

QUANTIZATION: Final = frozenset({conversion.quantize_linear, conversion.dequantize_linear})
"""The operators that take a scheme."""

_SIGN: Final = 0x80


def _scheme(value: object) -> str:
    return converted("scheme", enumeration(SCHEMES), value)


def _block_size(value: object) -> int | None:
    return None if value is None else converted("block_size", size_or_axis, value)


@attrs.frozen
class QuantizationScheme:
    """The explainer's ``MLQuantizationOptions``: they say what shapes and zero points say, and are checked by these.

    Attributes:
        name: one of ``SCHEMES``.
        block_size: how many elements a block has along each axis that has blocks; None for what the shapes say.
    """

    name: str = attrs.field(converter=_scheme)
    block_size: int | None = attrs.field(converter=_block_size)

    @classmethod
    def of(cls, kwargs: Mapping[str, object]) -> Self:
        """Convert the options of a call."""
        return cls(kwargs.get("scheme", "affine"), kwargs.get("block_size"))

    def check(self, arguments: Arguments, values: Mapping[MLOperand, Value]) -> None:
        """Refuse operands that are not as the scheme says.

        Raises:
            Refused: the blocks have another size, the quantized numbers are integers, or their zero is not 0.
        """
        if self.block_size is not None and self.name != "blockwise-float":
            refuse("block_size", self.block_size, "absent: only the scheme blockwise-float has blocks")
        if self.name == "affine":
            return
        zero_point = arguments.operand("zero_point")
        if zero_point.data_type != FLOAT8:
            refuse("the data type of zero_point", zero_point.data_type, f"{FLOAT8}, for the scheme {self.name}")
        if not _is_zero(values[zero_point]):
            raise Refused(f"zero_point is no constant of zeros; it must be one, for the scheme {self.name}")
        self._check_blocks(arguments.operand("input").shape, arguments.operand("scale").shape)

    def _check_blocks(self, shape: tuple[int, ...], scale: tuple[int, ...]) -> None:
        if self.name == "symmetric-float":
            if any(count not in (1, size) for size, count in zip(shape, scale, strict=True)):
                refuse(
                    "the shape of scale", list(scale), f"1 or the size of {list(shape)} along each axis, without blocks"
                )
            return
        if self.block_size is None or any(size % count for size, count in zip(shape, scale, strict=True)):
            return  # the shapes say it, or the operator refuses them
        blocks = {size // count for size, count in zip(shape, scale, strict=True)}
        if self.block_size not in blocks or blocks - {1, self.block_size}:
            refuse(
                f"the shape of scale, for an input {list(shape)},",
                list(scale),
                f"such that blocks have {self.block_size} elements along an axis, and 1 along the others",
            )


def resolved(
    operator: Operator[..., Any], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object], QuantizationScheme | None]:
    """Return an operator's arguments without those of the proposal, and the scheme of a quantization.

    Raises:
        TypeError: the scheme is none.
    """
    if operator is conversion.cast:
        args = tuple(map(_allowed, args))
        return args, {name: _allowed(value) for name, value in kwargs.items()}, None
    if operator not in QUANTIZATION:
        return args, kwargs, None
    rest = {name: value for name, value in kwargs.items() if name not in ("scheme", "block_size")}
    return args, rest, QuantizationScheme.of(kwargs)


def _allowed(value: object) -> object:
    name = SYNONYMS.get(value, value) if isinstance(value, str) else ""
    return ProposedDataType(name) if name in LOW_PRECISION else value


def _is_zero(value: Value) -> bool:
    if not isinstance(value, Constant) or not isinstance(value.data, np.ndarray):
        return False
    return not np.any(value.data & ~np.uint8(_SIGN))
