"""The table of rules: how each ONNX operator is converted.

The signature of a rule is its declaration. After ``context`` come the operator's inputs in ONNX's order:

* ``MLOperand``: an operand; a static value becomes a constant;
* ``StaticValue``: must be known, or the node is refused;
* ``Integers``, ``Integer``, ``Numbers``: the same, as Python numbers (shapes, axes, pads);
* ``Value``: either;
* ``... | None``: may be absent, ``*inputs`` any number.

Keyword parameters are attributes by their ONNX names, checked as their annotations say: ``bool`` for 0 or 1,
``Literal`` for a choice. A class made by :mod:`attrs` stands for several attributes, its fields. An absent attribute
has the default that ONNX gives it in the operator's version, else the parameter's own. Attributes and inputs that a
rule does not name are not supported: they must be absent or have their default. A rule that would be wrong in a corner
calls ``refuse()``.

A rule may hold for versions of an operator that lack some of its inputs and attributes: these are then absent. An
input that is an attribute of the same name in an earlier version is given its value, as a static one.

An operator that ONNX defines by a function needs no rule: its body is converted. It has one where the body would be
slower, or less exact, which the rule's docstring says.

Of an operator that ONNX does not have (``com.microsoft.…``) the signature is all that is known: it names every
attribute, with its default and, in the annotation, its type.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import attrs

from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, Result, StaticValue, Value
from webnn_py.onnx_models.rule_helpers import axes

Integers = Annotated[tuple[int, ...], axes.integers]
"""A static list of integers, or a single one."""

Integer = Annotated[int, axes.integer]
"""A static single integer."""

Numbers = Annotated[tuple[float, ...], axes.numbers]
"""A static list of floats."""

InputKind = Literal["operand", "static", "either"]

Read = Callable[[str, StaticValue], object]
"""Makes Python numbers of a static value, given its name in messages."""

_KINDS: Mapping[Any, tuple[InputKind, Read | None]] = {
    MLOperand: ("operand", None),
    StaticValue: ("static", None),
    Integers: ("static", axes.integers),
    Integer: ("static", axes.integer),
    Numbers: ("static", axes.numbers),
    Value: ("either", None),
}

REQUIRED: Final = inspect.Parameter.empty
"""The default of an attribute that must be given."""


@attrs.frozen
class InputParameter:
    """One input that a rule takes.

    Attributes:
        name: its name.
        kind: how it is taken.
        required: whether it must be there.
        read: makes Python numbers of a static one; None for an array.
        default: what an absent one is.
    """

    name: str
    kind: InputKind
    required: bool
    read: Read | None = None
    default: object = None


@attrs.frozen(eq=False)
class Rule:
    """A rule for converting an operator, in one or more of its versions.

    Attributes:
        function: the rule itself.
        inputs: the inputs that it takes.
        variadic: what it takes any number of beyond those, or None.
        attributes: the attributes that it takes, with its own defaults, or ``REQUIRED``.
        attribute_types: their annotations, without None.
        groups: the parameters that take several attributes, with a class and its fields, which these are.
        parameters: the names of its inputs and attributes.
        checks: what checks attributes, by name, and returns them as the rule takes them.
    """

    function: Callable[..., Result]
    inputs: tuple[InputParameter, ...]
    variadic: InputParameter | None
    attributes: Mapping[str, object]
    attribute_types: Mapping[str, object]
    groups: Mapping[str, tuple[type[attrs.AttrsInstance], Sequence[str]]]
    parameters: frozenset[str] = attrs.field(init=False)
    checks: Mapping[str, Callable[[object], object]] = attrs.field(init=False)

    @parameters.default
    def _parameters(self) -> frozenset[str]:
        return frozenset([*(item.name for item in self.inputs), *self.attributes])

    @checks.default
    def _checks(self) -> Mapping[str, Callable[[object], object]]:
        checks: dict[str, Callable[[object], object]] = {}
        for name, annotation in self.attribute_types.items():
            if annotation is bool:
                checks[name] = partial(_flag, name)
            elif get_origin(annotation) is Literal:
                checks[name] = partial(_choice, name, get_args(annotation))
        return checks

    @property
    def category(self) -> str:
        """The module that has the rule."""
        return self.function.__module__.rpartition(".")[2]

    @classmethod
    def declared_by(cls, function: Callable[..., Result]) -> "Rule":
        """Read a rule's signature."""
        hints = get_type_hints(function, include_extras=True)
        inputs: list[InputParameter] = []
        variadic: InputParameter | None = None
        attributes: dict[str, object] = {}
        types: dict[str, object] = {}
        groups: dict[str, tuple[type[attrs.AttrsInstance], Sequence[str]]] = {}
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            name, annotation = parameter.name, hints[parameter.name]
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                variadic = _input_parameter(parameter, annotation)
            elif parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                inputs.append(_input_parameter(parameter, annotation))
            elif attrs.has(annotation):
                groups[name] = annotation, tuple([field.name for field in attrs.fields(annotation)])
                for field in attrs.fields(annotation):
                    attributes[field.name] = REQUIRED if field.default is attrs.NOTHING else field.default
                    types[field.name] = _without_none(field.type)
            else:
                attributes[name], types[name] = parameter.default, _without_none(annotation)
        return cls(function, tuple(inputs), variadic, attributes, types, groups)


def _flag(name: str, value: object) -> bool:
    """Refuse numbers other than 0 and 1: implementations disagree on their meaning."""
    if value not in (0, 1):
        refuse(f"attribute {name}", value, "0 or 1")
    return bool(value)


def _choice(name: str, allowed: tuple[object, ...], value: object) -> object:
    if value not in allowed:
        *others, last = map(str, allowed)
        refuse(f"attribute {name}", value, f"{', '.join(others)} or {last}" if others else last)
    return value


def _without_none(annotation: Any) -> object:
    kinds = get_args(annotation)
    return next(kind for kind in kinds if kind is not NoneType) if NoneType in kinds else annotation


def _input_parameter(parameter: inspect.Parameter, annotation: Any) -> InputParameter:
    default = parameter.default
    for present, (kind, read) in _KINDS.items():
        if annotation in (present, present | None):
            required = annotation == present and default is REQUIRED
            return InputParameter(parameter.name, kind, required, read, None if default is REQUIRED else default)
    raise NotImplementedError(f"no kind of input is known for the annotation {annotation!r}")


Rules = Mapping[str, Mapping[int, Rule]]
"""Rules by operator and version of the operator."""

TABLE: dict[str, dict[int, Rule]] = {}
"""The rules that are registered so far; ``registry`` has all of them."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Result])


def rule(operator: str, *versions: int) -> Callable[[FunctionT], FunctionT]:
    """Register a rule.

    Args:
        operator: the ONNX operator; before that of another domain stands the domain, with a dot.
        versions: the versions of the operator (the opsets in which ONNX changed it) that the rule is right for.
            Others are refused, later ones too: what ONNX may change in them cannot be known.
    """

    def register(function: FunctionT) -> FunctionT:
        _enter(operator, versions, Rule.declared_by(function))
        return function

    return register


def one_to_one(
    onnx_operator: str, operator: Operator[..., Any], *versions: int, attributes: Sequence[str] = ()
) -> None:
    """Register a rule for an ONNX operator that is a WebNN operator, with these attributes as its options.

    Where ONNX also has a function for it, its body would be several nodes.
    """

    def convert(context: ConversionContext, *operands: MLOperand, **options: float) -> MLOperand:
        return context.apply(operator, *operands, **options)

    convert.__module__ = f"webnn_py.onnx_models.rules.{operator.category}"
    names = [parameter.name for parameter in operator.parameters.values() if parameter.is_operand]
    inputs = tuple([InputParameter(name, "operand", required=True) for name in names])
    options, types = dict.fromkeys(attributes, REQUIRED), dict.fromkeys(attributes, float)
    _enter(onnx_operator, versions, Rule(convert, inputs, None, options, types, {}))


def _enter(operator: str, versions: Sequence[int], declared: Rule) -> None:
    by_version = TABLE.setdefault(operator, {})
    for version in versions:
        if version in by_version:
            raise RuntimeError(f"version {version} of {operator} has two rules")
        by_version[version] = declared
