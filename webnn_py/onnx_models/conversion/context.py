"""``ConversionContext``: what a rule builds with."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast, final

import attrs
import numpy as np
from numpy.typing import NDArray
from onnx import helper

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.descriptors import MLOperandDataType, MLOperandDataTypeLike, MLOperandDescriptor
from webnn_py.core.device.backend import Backend, Capabilities
from webnn_py.core.graph import Constant, Node
from webnn_py.core.graph import Value as GraphValue
from webnn_py.core.operators import movement
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_export.body import name_of
from webnn_py.onnx_models.conversion.booleans import is_boolean
from webnn_py.onnx_models.conversion.freezing_advice import HIGHEST_RANK, Freezing
from webnn_py.onnx_models.folding.known_operands import known_value
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.reading.element_types import CAN_BE_NARROWED, EXACTLY, webnn_data_type

StaticValue = NDArray[Any]
"""A value that is known while the graph is built."""

Value = MLOperand | StaticValue
"""Any value of a model."""

Result = Value | Sequence[Value | None]
"""The return value of a rule: its output, or its outputs; None for one that is not used."""


@attrs.frozen
class Constants:
    """Static values that became constants.

    Attributes:
        key_of: gives the key of a value that is worth being kept once on the device.
        narrowing: which data types others stand for, by their names.
        made: the operands so far, by the identity of their values.
        numbers: scalar constants so far, by what they are written as, and data type.
        known: what operands are while building; None for those that depend on an input.
        in_shapes: constants that were reshaped, by what they were and the shape.
        boolean_inputs: the inputs of the graph that are booleans in the model.
    """

    key_of: Callable[[StaticValue], Hashable | None]
    narrowing: Mapping[str, str] = EXACTLY
    made: dict[int, tuple[StaticValue, MLOperand]] = attrs.field(factory=dict)
    numbers: dict[tuple[str, str], MLOperand] = attrs.field(factory=dict)
    known: dict[MLOperand, StaticValue | None] = attrs.field(factory=dict)
    in_shapes: dict[tuple[MLOperand, tuple[int, ...]], MLOperand] = attrs.field(factory=dict)
    boolean_inputs: set[GraphValue] = attrs.field(factory=set)


def read_only(value: StaticValue) -> StaticValue:
    """Return the same values as a read-only array: C-contiguous, in native byte order."""
    array = np.asarray(value)  # of no dimensions, numpy's functions give numbers
    if not (array.flags.c_contiguous and array.dtype.isnative):
        array = np.require(value, value.dtype.newbyteorder("="), "C")
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def narrowed(value: StaticValue, data_type: str) -> StaticValue:
    """Return an array in a narrower type of its kind; what is beyond that becomes the nearest, but infinity stays."""
    if value.dtype.kind in "iu":
        integers = np.iinfo(data_type)
        return value.clip(integers.min, integers.max).astype(data_type)
    floats = np.finfo(data_type)
    clipped = np.where(np.isfinite(value), value.clip(floats.min, floats.max), value)
    with np.errstate(all="ignore"):
        return clipped.astype(data_type)


@final
class ConversionContext(Builder):
    """The builder's operators, labelled with the name of the node that is converted.

    A refusal by the builder is a refusal of the node.

    Args:
        builder: what to build with.
        label: the node's name.
        wanted: for each output of the node, whether it is used.
        constants: what :meth:`operand` made so far in this conversion.
        expenses: what the model has cost so far.
        freezing: knows what inputs operands depend on.

    Attributes:
        label: the node's name.
        expenses: what the model has cost so far.
        wanted: for each output of the node, whether it is used.
        drawn: the operators that were drawn.
        is_repeatable: whether nothing was asked of an operand but its descriptor, and whether it is a constant.
    """

    def __init__(  # noqa: PLR0913 - what the conversion knows, and what is the node's own
        self,
        builder: MLGraphBuilder,
        label: str,
        wanted: Sequence[bool],
        *,
        constants: Constants,
        expenses: Expenses,
        freezing: Freezing,
    ) -> None:
        self._builder = builder
        self.label = label
        self._constants = constants
        self._freezing = freezing
        self.expenses = expenses
        self.wanted = tuple(wanted)
        self.drawn: list[Node] = []
        self.is_repeatable = True

    def append(self, operator: Operator[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Add an operator, as the builder does, with the node's label; a composite that is not one node is drawn."""
        if isinstance(operator, Composite) and not self.draws_whole(operator):
            return operator.decomposition(self, *args, **kwargs)
        if operator is movement.reshape and (made := self._constant_in_shape(*args)) is not None:
            self.is_repeatable = False
            return made
        try:
            made = self._builder.append(operator, *args, **{**kwargs, "label": self.label})
        except TypeError as error:
            raise Refused(str(error)) from error
        value: Any = self.value_of(made[0] if isinstance(made, list) else made)
        self.drawn.append(value.node)
        return made

    def cast(self, input: MLOperand, data_type: MLOperandDataTypeLike, *, label: str = "") -> MLOperand:
        """Add a cast, unless the operand is of the type already."""
        return input if input.data_type == data_type else super().cast(input, data_type, label=label)

    def value_of(self, operand: MLOperand) -> GraphValue:
        """Return the value of the graph that an operand stands for."""
        return self._builder.value_of(operand)

    def operand_of(self, value: GraphValue) -> MLOperand:
        """Return an operand that stands for a value of the graph."""
        return self._builder.operand_of(value, self.label)

    @property
    def backend(self) -> Backend:
        """The device that the graph is converted for."""
        return self._builder.context.device.backend

    @property
    def capabilities(self) -> Capabilities:
        """The data types, operators and sizes that the device takes."""
        return self._builder.context.capabilities

    def apply(self, operator: Operator[..., MLOperandDescriptor], *args: object, **options: object) -> MLOperand:
        """Add an operator of one output that is given as a value."""
        result: MLOperand = self.append(operator, *args, **options)
        return result

    def draws_whole(self, composite: Composite[..., Any]) -> bool:
        """Return whether a composite is one node: the device takes it, and alone decides."""
        seen = any(each.sees_all for each in self._builder.context.extensions)
        return not seen and bool(self.capabilities.supports(composite))

    def composite(
        self, composite: Composite[..., list[MLOperandDescriptor]], operands: Mapping[str, Value], **options: object
    ) -> list[MLOperand]:
        """Add a composite: as one node where the device takes it whole, or else by its decomposition.

        Args:
            composite: the composite.
            operands: those that are there, by parameter; its tables as arrays.
            options: every other argument that is there.
        """
        if self.draws_whole(composite):
            try:
                given = {name: self.operand(value) for name, value in operands.items()}
                return cast("list[MLOperand]", self.append(composite, **given, **options))
            except Refused:
                pass  # its operators may take what it does not, or say what they refuse
        drawn = composite.decomposition(self, **operands, **options)
        return cast("list[MLOperand]", drawn)

    def operand(self, value: Value) -> MLOperand:
        """Return a value of the model as an operand; each static one becomes a constant only once."""
        if isinstance(value, MLOperand):
            return value
        made = self._constants.made
        if id(value) not in made:
            made[id(value)] = (value, self.constant(value))
        return made[id(value)][1]

    def constant(
        self,
        value: StaticValue | MLNumber | bytes,
        /,
        *,
        data_type: MLOperandDataType | None = None,
        shape: Sequence[int] | None = None,
    ) -> MLOperand:
        """Return a constant of an array, or as any builder; booleans become ``uint8``."""
        if data_type is not None and not isinstance(value, bytes):
            return self.number(cast("float", value), data_type)
        array = np.frombuffer(value, data_type).reshape(shape or ()) if isinstance(value, bytes) else np.asarray(value)
        if array.dtype == np.bool_:
            array = array.astype(np.uint8)
        if array.size == 0:
            raise Refused(f"a value of the shape {list(array.shape)} is needed as a tensor; WebNN has no empty ones")
        name = name_of(array.dtype)
        if name in CAN_BE_NARROWED:
            element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
            narrow = self.data_type("the data type of a value", element_type)
            if narrow != name:
                self.expenses.add_bytes(array.nbytes)
                array = narrowed(array, narrow)
        array = read_only(array)
        try:
            return self._builder.constant_shared(array, self._constants.key_of(array))
        except TypeError as error:
            raise Refused(str(error)) from error

    def _constant_in_shape(self, operand: MLOperand, shape: Sequence[int]) -> MLOperand | None:
        """Return a constant in another shape, which is another constant; None of anything else."""
        value, sizes = self.value_of(operand), tuple(shape)
        data = value.data if isinstance(value, Constant) else None
        if not isinstance(value, Constant) or not isinstance(data, np.ndarray):
            return None
        if math.prod(sizes) != data.size or min(sizes, default=1) < 1:
            return None  # as the operator says it
        there, place = self._constants.in_shapes, (operand, sizes)
        if place not in there:
            there[place] = self._builder.constant_shared(read_only(data.reshape(sizes)), value.key)
        return there[place]

    @property
    def has_four_bits(self) -> bool:
        """Return whether integers of four bits stay what they are: the proposal "int4", where it was asked for."""
        return bool(self.capabilities.packed)

    def four_bits(self, packed: StaticValue, data_type: str, shape: Sequence[int]) -> MLOperand:
        """Return a constant of four bits, for quantization: two elements in a byte, the first in the lower bits."""
        try:
            return self._builder.constant(packed, data_type=cast("MLOperandDataType", data_type), shape=shape)
        except TypeError as error:
            raise Refused(str(error)) from error

    def known(self, value: Value | None) -> StaticValue | None:
        """Return a value of the model as it is known while building; None if it is absent, or depends on an input.

        Raises:
            Refused: computing it costs more than is left.
        """
        if not isinstance(value, MLOperand):
            return value
        self.is_repeatable = False
        known = self._constants.known
        if value not in known:
            array = known_value(self.value_of(value), self.expenses)
            known[value] = None if array is None else read_only(array)
        return known[value]

    def is_boolean(self, value: Value) -> bool:
        """Return whether a value of the model is of booleans, which are ``uint8`` in a graph, and not of numbers."""
        if not isinstance(value, MLOperand):
            return bool(value.dtype == np.bool_)
        if value.data_type != "uint8":
            return False
        return is_boolean(self.value_of(value), self._constants.boolean_inputs)

    def number(self, value: float, like: MLOperand | MLOperandDataType) -> MLOperand:
        """Return a scalar constant of a data type, or that of ``like``; equal ones are one."""
        there = self._constants.numbers
        data_type = like.data_type if isinstance(like, MLOperand) else like
        key = repr(value), data_type
        if key not in there:
            try:
                there[key] = self._builder.constant(value, data_type=data_type)
            except TypeError as error:
                raise Refused(str(error)) from error
        return there[key]

    def data_type(self, subject: str, element_type: int) -> MLOperandDataType:
        """Return the WebNN data type of an ONNX element type.

        Raises:
            Refused: the device has no such type, and none that is allowed in its place.
        """
        supported = self.capabilities.data_types
        return webnn_data_type(subject, element_type, self._constants.narrowing, supported)

    def required(self, subject: str, value: Value) -> StaticValue:
        """Return a value that must be known while building.

        Raises:
            Refused: it is not.
        """
        known = self.known(value)
        if known is None:
            raise RefusedWithWayOut(
                f"{subject} is computed when the graph runs; it must be known while building", self.freezing([value])
            )
        return known

    def freezing(self, values: Sequence[Value | None], highest_rank: int = HIGHEST_RANK) -> str:
        """Return what a caller can do for values to be static, in words; "" where there is nothing.

        Args:
            values: those that must be static.
            highest_rank: of the inputs that are worth freezing.
        """
        return self._freezing.advice([value for value in values if isinstance(value, MLOperand)], highest_rank)

    def reserve(self, bytes_: int) -> None:
        """Spend the bytes of a large value that a rule is about to compute from small ones.

        Raises:
            Refused: so many bytes are not left.
        """
        self.expenses.add_bytes(bytes_)
