"""Data types and descriptors of operands and buffers, their byte length, and "check dimensions"."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final, Literal, TypeVar, cast, get_args

import attrs
import numpy as np

from webnn_py.core.handle import forgotten_await
from webnn_py.core.message_text import listed, plain, shown, words_of

T = TypeVar("T")

MLOperandDataType = Literal["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"]
"""The eight data types of the specification, by their names there."""

INT4: Final = cast("MLOperandDataType", "int4")
UINT4: Final = cast("MLOperandDataType", "uint4")

FOUR_BITS: Final[tuple[MLOperandDataType, ...]] = (INT4, UINT4)
"""Those of the proposal "int4", besides the eight: of two elements in a byte the first has the lower bits."""

NumpyNumber = np.float32 | np.float16 | np.int32 | np.uint32 | np.int64 | np.uint64 | np.int8 | np.uint8

MLOperandDataTypeLike = MLOperandDataType | np.dtype[NumpyNumber] | type[NumpyNumber]
"""A data type as an argument: its name, or numpy's dtype or scalar type of that name."""

DATA_TYPES: Final[tuple[MLOperandDataType, ...]] = get_args(MLOperandDataType)
"""The eight of the specification, whose elements are whole bytes."""

BYTES_PER_ELEMENT: Final[Mapping[MLOperandDataType, int]] = {name: np.dtype(name).itemsize for name in DATA_TYPES}

MOST_BYTES_PER_ELEMENT: Final = max(BYTES_PER_ELEMENT.values())

MAX_DIMENSION: Final = 2**31 - 1
"""A valid dimension, and a valid number of elements, is 1 to this (the range of ``long``)."""

MAX_UNSIGNED_LONG: Final = 2**32 - 1

MAX_ITEMS: Final = 2**16
"""The most items that are read of a sequence: more than any argument may have, and less than takes time."""

_NO_SEQUENCES: Final = (str, bytes, bytearray, memoryview, Mapping)
"""Types that can be iterated, but are no sequences of values."""


# Numpy has two types of one name where two of C's integers have one size, hence the walk over its codes.
_NAMED_BY_NUMPY: Final[Mapping[object, MLOperandDataType]] = {
    key: cast("MLOperandDataType", dtype.name)
    for dtype in map(np.dtype, np.typecodes["AllInteger"] + np.typecodes["Float"])
    if dtype.name in BYTES_PER_ELEMENT
    for key in (dtype, dtype.type)
}


_INTEGERS: Final = frozenset({int})


def _shape(values: Iterable[int]) -> tuple[int, ...]:
    if type(values) is tuple and _INTEGERS.issuperset(map(type, values)):  # as nearly all are, in half the time
        return values
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
        # spec: MLOperandDescriptor element count 1-3
        return math.prod(self.shape)

    @property
    def byte_length(self) -> int:
        """The number of bytes that the elements take, without padding."""
        # spec: MLOperandDescriptor byte length 1-4
        bytes_each = BYTES_PER_ELEMENT.get(self.data_type)
        return -(-math.prod(self.shape) // 2) if bytes_each is None else math.prod(self.shape) * bytes_each

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


def stored(descriptor: MLOperandDescriptor) -> MLOperandDescriptor:
    """Return the descriptor in memory: the same, or that of the bytes with elements of four bits."""
    if descriptor.data_type in BYTES_PER_ELEMENT:
        return descriptor
    return MLOperandDescriptor("uint8", (descriptor.byte_length,))


def operand_data_type(value: object) -> MLOperandDataType:
    """Convert ``value`` to an ``MLOperandDataType``: one of the eight names, or numpy's dtype or type of that name.

    Raises:
        TypeError: it is neither, or a dtype of the other byte order.
    """
    if isinstance(value, str) and plain(value) in BYTES_PER_ELEMENT:
        return cast("MLOperandDataType", plain(value))
    if isinstance(value, (np.dtype, type)) and value in _NAMED_BY_NUMPY:
        return _NAMED_BY_NUMPY[value]
    raise TypeError(
        f"is {shown(value)}; it must be one of {', '.join(DATA_TYPES)}, or numpy's native dtype of that name"
    )


def converted(name: str, convert: Callable[[object], T], value: object) -> T:
    """Return the argument ``name``, converted; whatever goes wrong, it is refused by its name.

    Args:
        name: the argument, for the message.
        convert: raises ``TypeError("is …; it must be …")``, or ``TypeError("[index] is …")`` for an item.
        value: what was given, whose own methods may raise anything.

    Raises:
        TypeError: it cannot be converted.
    """
    try:
        return convert(value)
    except Exception as error:
        words = error.args[0] if type(error) is TypeError and error.args else None
        if type(words) is str and words.startswith(("is ", "[")):
            raise TypeError(f"{name}{'' if words[0] == '[' else ' '}{words}") from error.__cause__
        raise TypeError(f"{name} is {shown(value)}, which cannot be converted: {words_of(error)}") from error


def unsigned_long(value: object, lowest: int = 0, highest: int = MAX_UNSIGNED_LONG, below_zero: str = "") -> int:
    """Convert ``value`` to Web IDL's ``[EnforceRange] unsigned long``: an integer, 0 to 2³²-1.

    Stricter than Web IDL, which truncates 2.7 and parses "2": here only integers are integers.

    Args:
        value: what was given.
        lowest: the lowest number that the message allows; only numbers outside of the type's range are refused.
        highest: the highest one.
        below_zero: what the message adds for a number below 0.

    Raises:
        TypeError: it is no integer, or out of range.
    """
    if isinstance(value, bool):
        raise TypeError(f"is {value!r}; it must be an integer, not a bool")
    try:
        number = operator.index(cast("int", value))
    except TypeError:
        raise TypeError(f"is {shown(value)}; it must be an integer") from None
    if not 0 <= number <= MAX_UNSIGNED_LONG:
        raise TypeError(f"is {shown(number)}; it must be from {lowest} to {highest}{below_zero if number < 0 else ''}")
    return number


def size_or_axis(value: object, lowest: int = 0, highest: int = MAX_UNSIGNED_LONG) -> int:
    """Convert ``value`` to a size or an axis, neither of which may be negative, as some libraries allow."""
    return unsigned_long(
        value, lowest, highest, "; a size is at least 1 and never inferred, and no axis counts from the end"
    )


def dimension(value: object) -> int:
    """Convert ``value`` to a dimension, whose range :func:`check_dimensions` checks.

    Raises:
        TypeError: it is no integer, or no ``unsigned long``.
    """
    return size_or_axis(value, 1, MAX_DIMENSION)


def string(value: object) -> str:
    """Convert ``value`` to a string of Python's own.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"is {shown(value)}; it must be a string")
    return plain(value)


def sequence_of(values: object, convert: Callable[[object], T], noun: str) -> tuple[T, ...]:
    """Convert ``values`` to ``sequence<…>``.

    Args:
        values: what was given.
        convert: the conversion of an item.
        noun: what the items must be, for the message.

    Raises:
        TypeError: it is no sequence, it is longer than any that is allowed, or one of its items is refused.
    """
    hint = forgotten_await(values)
    if hint or isinstance(values, _NO_SEQUENCES) or not isinstance(values, Iterable):
        raise TypeError(f"is {shown(values)}; it must be a sequence of {noun}{hint}")
    try:
        items = tuple(islice(values, MAX_ITEMS + 1))
    except Exception as error:
        raise TypeError(
            f"is {shown(values)}; it must be a sequence of {noun}, and reading it failed: {words_of(error)}"
        ) from error
    if len(items) > MAX_ITEMS:
        raise TypeError(f"is {shown(values)}, of more than {MAX_ITEMS} items; no argument takes so many")
    return tuple(converted(f"[{index}]", convert, item) for index, item in enumerate(items))


def unsigned_longs(values: object) -> tuple[int, ...]:
    """Convert ``values`` to ``sequence<[EnforceRange] unsigned long>``.

    Raises:
        TypeError: it is no sequence, or one of its items is no such integer.
    """
    return _plain_integers(values) or sequence_of(values, size_or_axis, "integers")


def dimensions(values: object) -> tuple[int, ...]:
    """Convert ``values`` to a shape, whose dimensions are not yet checked.

    Raises:
        TypeError: it is no sequence, or one of its items is no such integer.
    """
    return _plain_integers(values) or sequence_of(values, dimension, "integers")


def _plain_integers(values: object) -> tuple[int, ...]:
    """Return the items of a list or tuple of nothing but integers in range, as nearly all are; else none."""
    if type(values) not in (list, tuple):
        return ()
    given: Any = values
    if not 0 < len(given) <= MAX_ITEMS or not _INTEGERS.issuperset(map(type, given)):
        return ()
    return tuple(given) if min(given) >= 0 and max(given) <= MAX_UNSIGNED_LONG else ()


def operand_descriptor(
    data_type: object, shape: object, proposed: tuple[MLOperandDataType, ...] = ()
) -> MLOperandDescriptor:
    """Convert the two members of a descriptor, as Web IDL does, without checking dimensions.

    Args:
        data_type: a data type.
        shape: the dimensions.
        proposed: the data types of proposals that may be named besides the eight.

    Raises:
        TypeError: a member has the wrong type.
    """
    text = plain(cast("str", data_type)) if issubclass(type(data_type), str) else ""
    checked = text if text in proposed else converted("data_type", operand_data_type, data_type)
    return MLOperandDescriptor(checked, converted("shape", dimensions, shape))


def check_dimensions(descriptor: MLOperandDescriptor, *, max_rank: int, max_byte_length: int) -> str | None:
    """Return the spec's "check dimensions": what is wrong with ``descriptor``, or None."""
    shape = descriptor.shape
    # spec: MLOperandDescriptor check dimensions 2
    if len(shape) > max_rank:
        return f"rank is {len(shape)}; it must be at most {max_rank}"
    # spec: MLOperandDescriptor check dimensions 1
    if shape and not 1 <= min(shape) <= max(shape) <= MAX_DIMENSION:
        axis = next(axis for axis, size in enumerate(shape) if not 1 <= size <= MAX_DIMENSION)
        return f"shape is {listed(shape)}; dimension {axis} must be from 1 to {MAX_DIMENSION}"
    count = math.prod(shape)
    # spec: MLOperandDescriptor check dimensions 3
    if count > MAX_DIMENSION:
        return f"shape {listed(shape)} has {count} elements; it must have at most {MAX_DIMENSION}"
    # spec: MLOperandDescriptor check dimensions 4
    if count * MOST_BYTES_PER_ELEMENT > max_byte_length and descriptor.byte_length > max_byte_length:
        return f"{descriptor} takes {descriptor.byte_length} bytes; it must take at most {max_byte_length}"
    # spec: MLOperandDescriptor check dimensions 5
    return None
