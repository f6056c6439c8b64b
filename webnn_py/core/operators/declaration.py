"""Declarations of operators: each is declared once, as a typed function.

Positional parameters are the operator's operands and arguments, keyword parameters its options with the defaults
of the IDL, the docstring its documentation, and the body its shape rule: it returns the descriptor of the output,
or a list of descriptors where the IDL returns a sequence. The decorator adds what a signature cannot say: the
spec's name, its limits row, and :class:`Facts`: whether the operator is element-wise, propagates NaN, and so on. The
builder's method, its checks, ``op_support_limits()``, kernels and documentation all hang off the :class:`Operator` that
results.

``label`` and the data types and ranks of the limits row are checked before the body runs; the body raises
:class:`~webnn_py.core.operators.rules.Refused` through the helpers of ``rules``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Generic, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, cast, get_type_hints

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor, converted
from webnn_py.core.frozen import frozen
from webnn_py.core.message_text import LONGEST, shortened, visible
from webnn_py.core.operators.idl import Converter, converter
from webnn_py.core.operators.limits import LimitsRow
from webnn_py.core.operators.operand import MLOperand

P = ParamSpec("P")
T = TypeVar("T")
OutputT = TypeVar("OutputT", MLOperandDescriptor, list[MLOperandDescriptor])


Decomposition = Callable[..., MLOperand | list[MLOperand]]
"""Takes a builder, then what the operator's method takes but its label; returns what that would."""


def spec_name_of(name: str) -> str:
    """Return the IDL's name of a parameter or an operand."""
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def python_name_of(spec_name: str) -> str:
    """Return the Python name of an operator, a parameter or an operand of the IDL."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z0-9])", "_", spec_name).lower()


@attrs.frozen
class Parameter:
    """One parameter of an operator's method."""

    name: str
    spec_name: str
    convert: Converter
    optional: bool
    required: bool
    default: object
    is_operand: bool


NO_OPTIONS: Final[Mapping[str, object]] = {}
"""Those of most operators of graphs: one object, which need not be found in memory each time."""


@frozen
class Arguments:
    """The converted arguments of one call.

    Attributes:
        values: every parameter but ``label``, in declaration order, absent ones as None.
        operands: the operands that are there, by parameter; a tuple for a sequence of operands.
        label: the call's label, "" when absent.
    """

    values: dict[str, object]
    operands: dict[str, MLOperand | tuple[MLOperand, ...]]
    label: str

    def each_operand(self) -> Iterator[tuple[str, str, MLOperand]]:
        """Yield every operand, as (parameter, the name to show, operand)."""
        for name, operand in self.operands.items():
            if isinstance(operand, tuple):
                for index, item in enumerate(operand):
                    yield name, f"{name}[{index}]", item
            else:
                yield name, name, operand

    def operand(self, name: str) -> MLOperand:
        """Return the operand called ``name``, which is there and no sequence."""
        return cast("MLOperand", self.operands[name])

    def options(self) -> Mapping[str, object]:
        """Return the arguments that are no operands: numbers, lists, enumerations, flags."""
        if len(self.values) == len(self.operands):
            return NO_OPTIONS
        return {name: value for name, value in self.values.items() if name not in self.operands}


def of_operands(operands: Mapping[str, Any], make: Callable[[Any], T]) -> dict[str, T | tuple[T, ...]]:
    """Return what a function makes of each operand, by parameter; of a sequence of operands a tuple."""
    return {name: tuple(map(make, item)) if isinstance(item, tuple) else make(item) for name, item in operands.items()}


class Facts(TypedDict, total=False):
    """Facts about what an operator computes, whatever its options; passes and devices rely on them.

    They hold up to rounding. Those about magnitudes and ranges hold for finite operands.

    Attributes:
        elementwise: each element of the output is computed from the elements in its place alone, once operands are
            broadcast. Devices fuse such operators.
        commutative: its two operands may change places.
        boolean: all elements of the output are 0 or 1.
        selects: the operands of which each element of the output is an element; True for all.
        averages: each element of the output is between the least and the greatest element of all operands.
        no_larger: no element of the output is larger in magnitude than the largest element of all operands.
        result_range: the lowest and highest number that the output may have.
        propagates_nan: the operands of which one NaN makes an element of the output NaN; True for all. Convolutions do
            so for the elements of one of their windows.
    """

    elementwise: bool
    commutative: bool
    boolean: bool
    selects: bool | tuple[str, ...]
    averages: bool
    no_larger: bool
    result_range: tuple[float, float]
    propagates_nan: bool | tuple[str, ...]


class Operator(Generic[P, OutputT]):
    """One operator: its declaration, and the builder's method that follows from it.

    Attributes:
        name: the Python name, which is the method's.
        spec_name: the name in the specification.
        category: the module that declares it.
        limits: the limits row.
        is_elementwise: whether elements are computed from those in their place alone; see ``Facts``.
        is_commutative: whether its two operands may change places.
        is_boolean: whether all elements of the output are 0 or 1.
        is_average: whether elements of the output are between those of the operands; also where they are selected.
        keeps_one_element: whether it is a reduction that returns a single element unchanged, as maximum and mean do.
        is_no_larger: whether the output is no larger in magnitude than the operands; also of averages.
        result_range: the range of its output's elements, if that is known for all operands.
        function: the declared function; its body is the shape rule.
    """

    def __init__(
        self,
        function: Callable[P, OutputT],
        spec_name: str,
        limits: LimitsRow,
        summary: str = "",
        **facts: Unpack[Facts],
    ) -> None:
        self.function: Callable[P, OutputT] = function
        self.name = python_name_of(spec_name) if summary else function.__name__.rstrip("_")
        self.spec_name = spec_name
        self.category = function.__module__.rpartition(".")[2]
        self.limits = limits
        self.is_elementwise = facts.get("elementwise", False)
        self.is_commutative = facts.get("commutative", False)
        self.is_boolean = facts.get("boolean", False)
        self._selects = facts.get("selects", False)
        self.is_average = facts.get("averages", False) or bool(self._selects)
        self.keeps_one_element = self.is_average and self.category == "reduction"
        self.is_no_larger = facts.get("no_larger", False) or self.is_average
        self.result_range = (0, 1) if self.is_boolean else facts.get("result_range")
        self._propagates_nan = facts.get("propagates_nan", False)
        first, separator, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
        self.__doc__ = (summary or first) + separator + rest
        self.__wrapped__: Callable[P, OutputT] = function

    def __repr__(self) -> str:
        return f"<operator {self.spec_name}>"

    @cached_property
    def signature(self) -> inspect.Signature:
        """Return the method's signature, without ``self``."""
        return inspect.signature(self.function)

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """Return the annotations, resolved."""
        return get_type_hints(self.function, include_extras=True)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters by name, ``label`` last."""
        hints = self.hints
        parameters = {}
        for name, declared in self.signature.parameters.items():
            convert, optional = converter(hints[name])
            required = declared.default is inspect.Parameter.empty
            parameters[name] = Parameter(
                name=name,
                spec_name=spec_name_of(name),
                convert=convert,
                optional=optional,
                required=required,
                default=None if required else declared.default,
                is_operand="MLOperand" in str(hints[name]),
            )
        return parameters

    @cached_property
    def decomposition(self) -> Decomposition | None:
        """Return the function that draws what it computes by other operators; None for a primitive."""
        from webnn_py.core.decompositions.common import decomposition_of  # noqa: PLC0415 - they are made of declarations

        return decomposition_of(self.name, self.category)

    @cached_property
    def operand_names(self) -> tuple[str, ...]:
        """Return the parameters that are operands, or sequences of operands."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.is_operand)

    @cached_property
    def selected_operands(self) -> tuple[str, ...]:
        """Return the operands from which each element of the output is taken; none where that is not known."""
        return self.operand_names if self._selects is True else self._selects or ()

    @cached_property
    def nan_operands(self) -> tuple[str, ...]:
        """Return the operands of which one NaN makes an element of the output NaN."""
        return self.operand_names if self._propagates_nan is True else self._propagates_nan or ()

    @cached_property
    def _positional(self) -> tuple[str, ...]:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(p.name for p in self.signature.parameters.values() if p.kind in kinds)

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(name for name, parameter in self.parameters.items() if parameter.required)

    @cached_property
    def output_limits(self) -> tuple[str, ...]:
        """Return the rows of the limits that speak of outputs."""
        return tuple(name for name in self.limits if name not in self.parameters)

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Arguments:
        """Bind and convert the arguments of a call, as Web IDL would.

        Raises:
            TypeError: an argument is missing, unknown, or of the wrong type; the text does not name the operator.
        """
        given = self.by_name(args, kwargs)
        values: dict[str, Any] = {}
        operands: dict[str, MLOperand | tuple[MLOperand, ...]] = {}
        for name, parameter in self.parameters.items():
            if name not in given:
                values[name] = parameter.default
                continue
            value: Any = given[name]
            if value is not None or not parameter.optional:
                value = converted(name, parameter.convert, value)
                if parameter.is_operand:
                    operands[name] = value
            values[name] = value
        label = values.pop("label")
        return Arguments(values, operands, label)

    def by_name(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Name the positional arguments of a call, without converting any.

        Raises:
            TypeError: an argument is missing or unknown; ``inspect`` words it, being too slow for the rest.
        """
        given = dict(zip(self._positional, args, strict=False))
        given.update(kwargs)
        is_regular = len(given) == len(args) + len(kwargs)  # none is given twice, and there are not too many
        if not (is_regular and self.parameters.keys() >= given.keys() >= self._required):
            try:
                self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(visible(shortened(str(error), LONGEST))) from None
        return given

    def infer(self, arguments: Arguments) -> list[MLOperandDescriptor]:
        """Run the shape rule.

        Raises:
            Refused: the arguments do not fit together.
        """
        function: Callable[..., Any] = self.function
        result = function(**arguments.values)
        return result if isinstance(result, list) else [result]

    @cached_property
    def returns_sequence(self) -> bool:
        """Return whether the IDL returns ``sequence<MLOperand>``."""
        return bool(self.hints["return"] == list[MLOperandDescriptor])


DECLARED: dict[str, Operator[..., Any]] = {}
"""The operators declared so far, by Python name; ``registry`` has all of them."""


class _Declare(Protocol[P, OutputT]):
    def __call__(
        self, spec_name: str, limits: LimitsRow, summary: str, /, **facts: Unpack[Facts]
    ) -> Operator[P, OutputT]: ...


def family(**shared: Unpack[Facts]) -> Callable[[Callable[P, OutputT]], _Declare[P, OutputT]]:
    """Make a function that declares operators which have the decorated function and the given facts in common.

    Each has a name, a limits row and a summary, in place of the first line of the shared docstring, and may have other
    facts.
    """

    def decorate(function: Callable[P, OutputT]) -> _Declare[P, OutputT]:
        def declare(spec_name: str, limits: LimitsRow, summary: str, /, **facts: Unpack[Facts]) -> Operator[P, OutputT]:
            return _entered(Operator(function, spec_name, limits, summary, **(shared | facts)))

        return declare

    return decorate


def operator(
    spec_name: str, limits: LimitsRow, **facts: Unpack[Facts]
) -> Callable[[Callable[P, OutputT]], Operator[P, OutputT]]:
    """Declare an operator; see the module's docstring."""

    def declare(function: Callable[P, OutputT]) -> Operator[P, OutputT]:
        return _entered(Operator(function, spec_name, limits, **facts))

    return declare


def _entered(declared: Operator[P, OutputT]) -> Operator[P, OutputT]:
    if declared.name in DECLARED:
        raise RuntimeError(f"{declared.name} is declared twice")
    DECLARED[declared.name] = declared
    return declared
