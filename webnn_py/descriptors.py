"""Data types and descriptors of operands and buffers, their byte length, and "check dimensions"."""

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Final, Literal, cast, get_args

import attrs
import numpy as np

MLOperandDataType = Literal["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"]
"""The eight data types of the specification, by their names there."""

DATA_TYPES: Final[tuple[MLOperandDataType, ...]] = get_args(MLOperandDataType)

NumpyNumber = np.float32 | np.float16 | np.int32 | np.uint32 | np.int64 | np.uint64 | np.int8 | np.uint8

MLOperandDataTypeLike = MLOperandDataType | np.dtype[NumpyNumber] | type[NumpyNumber]
"""What may be given for a data type: its name, or numpy's dtype or scalar type of that name."""

BYTES_PER_ELEMENT: Final[Mapping[MLOperandDataType, int]] = {
    "float32": 4,
    "float16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "int8": 1,
    "uint8": 1,
}

MAX_DIMENSION: Final = 2**31 - 1
"""A valid dimension, and a valid number of elements, is 1 to this (the range of ``long``)."""

MAX_UNSIGNED_LONG: Final = 2**32 - 1


# Numpy has two types of one name where two of C's integers have one size, hence the walk over its codes.
_NAMED_BY_NUMPY: Final[Mapping[object, MLOperandDataType]] = {
    key: cast("MLOperandDataType", dtype.name)
    for dtype in map(np.dtype, np.typecodes["AllInteger"] + np.typecodes["Float"])
    if dtype.name in BYTES_PER_ELEMENT
    for key in (dtype, dtype.type)
}


def _shape(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(operator.index(value) for value in values)


@attrs.frozen
class MLOperandDescriptor:
    """The data type and the shape of an operand (section "MLOperandDescriptor dictionary")."""

    data_type: MLOperandDataType
    shape: tuple[int, ...] = attrs.field(converter=_shape)

    @property
    def rank(self) -> int:
        """The number of dimensions; 0 for a scalar."""
        return len(self.shape)

    @property
    def element_count(self) -> int:
        """The product of the dimensions; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def byte_length(self) -> int:
        """The number of bytes that the elements take, without padding."""
        return math.prod(self.shape) * BYTES_PER_ELEMENT[self.data_type]

    def __str__(self) -> str:
        return f"{self.data_type} {list(self.shape)}"


@attrs.frozen
class MLBufferDescriptor(MLOperandDescriptor):
    """A buffer's data type and shape, and what a script may do with it.

    The text calls it ``MLTensorDescriptor`` (section "MLTensorDescriptor dictionary").
    """

    readable: bool = False
    writable: bool = False
    constant: bool = False


def operand_data_type(value: object) -> MLOperandDataType:
    """Convert ``value`` to an ``MLOperandDataType``: one of the eight names, or numpy's dtype or type of that name.

    Raises:
        TypeError: it is neither, or a dtype of the other byte order.
    """
    if isinstance(value, str) and value in BYTES_PER_ELEMENT:
        return cast("MLOperandDataType", value)
    if isinstance(value, (np.dtype, type)) and value in _NAMED_BY_NUMPY:
        return _NAMED_BY_NUMPY[value]
    raise TypeError(f"is {value!r}; it must be one of {', '.join(DATA_TYPES)}, or numpy's native dtype of that name")


def shown(value: object) -> str:
    """A value for a message; Python refuses to write integers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return "an integer of thousands of digits"


def shortened(text: str, length: int = 60) -> str:
    """A text for a repr: at most ``length`` characters, the rest being three dots."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def unsigned_long(value: object) -> int:
    """Convert ``value`` to Web IDL's ``[EnforceRange] unsigned long``: an integer, 0 to 2³²-1.

    Stricter than Web IDL, which truncates 2.7 and parses "2": here only integers are integers.

    Raises:
        TypeError: it is no integer, or out of range.
    """
    if isinstance(value, bool):
        raise TypeError(f"is {value!r}; it must be an integer, not a bool")
    try:
        number = operator.index(cast("int", value))
    except TypeError:
        raise TypeError(f"is {value!r}; it must be an integer") from None
    if not 0 <= number <= MAX_UNSIGNED_LONG:
        raise TypeError(f"is {shown(number)}; it must be from 0 to {MAX_UNSIGNED_LONG}")
    return number


def unsigned_longs(values: object) -> tuple[int, ...]:
    """Convert ``values`` to ``sequence<[EnforceRange] unsigned long>``.

    Raises:
        TypeError: it is no sequence, or one of its items is no such integer.
    """
    if isinstance(values, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"is {values!r}; it must be a sequence of integers")
    numbers = []
    for index, value in enumerate(values):
        try:
            numbers.append(unsigned_long(value))
        except TypeError as error:
            raise TypeError(f"[{index}] {error}") from None
    return tuple(numbers)


def operand_descriptor(data_type: object, shape: object) -> MLOperandDescriptor:
    """Convert the two members of a descriptor, as Web IDL does, without checking dimensions.

    Raises:
        TypeError: a member has the wrong type.
    """
    try:
        converted = operand_data_type(data_type)
    except TypeError as error:
        raise TypeError(f"data_type {error}") from None
    try:
        return MLOperandDescriptor(converted, unsigned_longs(shape))
    except TypeError as error:
        separator = "" if str(error).startswith("[") else " "
        raise TypeError(f"shape{separator}{error}") from None


def check_dimensions(descriptor: MLOperandDescriptor, *, max_rank: int, max_byte_length: int) -> str | None:
    """The spec's "check dimensions": what is wrong with ``descriptor``, or None."""
    shape = list(descriptor.shape)
    if len(shape) > max_rank:
        return f"rank is {len(shape)}; it must be at most {max_rank}"
    for axis, size in enumerate(shape):
        if not 1 <= size <= MAX_DIMENSION:
            return f"shape is {shape}; dimension {axis} must be from 1 to {MAX_DIMENSION}"
    if descriptor.element_count > MAX_DIMENSION:
        return f"shape {shape} has {descriptor.element_count} elements; it must have at most {MAX_DIMENSION}"
    if descriptor.byte_length > max_byte_length:
        return f"{descriptor} takes {descriptor.byte_length} bytes; it must take at most {max_byte_length}"
    return None
