"""Tensor limits: the data types and ranks that an operand may have and that every device must support."""

from collections.abc import Mapping
from typing import Final

import attrs

from webnn_py.core.descriptors import DATA_TYPES, MLOperandDataType

DataTypes = tuple[MLOperandDataType, ...]

ANY: Final[DataTypes] = DATA_TYPES
FLOATS: Final[DataTypes] = ("float32", "float16")
SIGNED: Final[DataTypes] = ("float32", "float16", "int64", "int32", "int8")
NUMBERS_32_UP: Final[DataTypes] = ("float32", "float16", "int32", "uint32", "int64", "uint64")
QUANTIZED: Final[DataTypes] = ("uint8", "int8", "uint32", "int32")
INDICES: Final[DataTypes] = ("int32", "uint32", "int64")
COMMON: Final[DataTypes] = ("float32", "float16", "int32")
BYTES_TOO: Final[DataTypes] = ("float32", "float16", "int32", "int8", "uint8")
UINT8: Final[DataTypes] = ("uint8",)

MAX_RANK: Final = 8
"""The highest rank that any operand may have: what ``N`` stands for in the tables."""

EVERY_RANK: Final = (0, MAX_RANK)


@attrs.frozen
class RankRange:
    """The spec's ``MLRankRange``: the lowest and the highest rank, both allowed."""

    min: int
    max: int

    def __contains__(self, rank: int) -> bool:
        return self.min <= rank <= self.max

    def __str__(self) -> str:
        return str(self.min) if self.min == self.max else f"{self.min} to {self.max}"


@attrs.frozen
class TensorLimits:
    """One row of an operator's limits table.

    Attributes:
        data_types: the data types that the text allows.
        required: the data types that every implementation must support.
        ranks: the ranks that the text allows.
        required_ranks: the ranks that every implementation must support.
        type_of: the operand whose data type this one must share ("same as a"), or None.
        rank_of: the operand whose rank this one must share, or None.
    """

    data_types: DataTypes
    required: DataTypes
    ranks: RankRange
    required_ranks: RankRange
    type_of: str | None = None
    rank_of: str | None = None


LimitsRow = Mapping[str, TensorLimits]
"""An operator's limits, by operand; outputs are called ``output``, ``outputs`` or ``output0``, ``output1`` …"""


def limit(
    data_types: DataTypes,
    *,
    required: DataTypes | None = None,
    rank: int | tuple[int, int] = EVERY_RANK,
    type_of: str | None = None,
    rank_of: str | None = None,
    required_rank: tuple[int, int] | None = None,
) -> TensorLimits:
    """Write one row: what is not given follows from what is.

    Args:
        data_types: allowed data types. With ``type_of``, those of that operand.
        required: required data types; all allowed ones when absent.
        rank: the allowed rank, or the lowest and the highest.
        type_of: the operand whose data type this one shares.
        rank_of: the operand whose rank this one shares.
        required_rank: the required ranks; the allowed ones up to 5 when absent.
    """
    ranks = RankRange(rank, rank) if isinstance(rank, int) else RankRange(*rank)
    floor = RankRange(ranks.min, min(ranks.max, 5)) if required_rank is None else RankRange(*required_rank)
    return TensorLimits(data_types, data_types if required is None else required, ranks, floor, type_of, rank_of)


def of_ranks(data_types: DataTypes, *, required: DataTypes | None = None, **ranks: int | tuple[int, int]) -> LimitsRow:
    """Return the limits of an operator all of whose operands and outputs have the first one's data type.

    Args:
        data_types: allowed data types.
        required: required data types; all allowed ones when absent.
        ranks: the allowed rank of each, or the lowest and the highest.
    """
    first, *_ = ranks
    type_of = {name: None if name == first else first for name in ranks}
    return {
        name: limit(data_types, required=required, rank=rank, type_of=type_of[name]) for name, rank in ranks.items()
    }


def input_and_output(
    data_types: DataTypes,
    *,
    required: DataTypes | None = None,
    rank: int | tuple[int, int] = EVERY_RANK,
    keeps_rank: bool = False,
) -> LimitsRow:
    """Return the limits of an operator whose output has the data type of its only operand, and perhaps its rank."""
    return {
        "input": limit(data_types, required=required, rank=rank),
        "output": limit(
            data_types, required=required, rank=rank, type_of="input", rank_of="input" if keeps_rank else None
        ),
    }
