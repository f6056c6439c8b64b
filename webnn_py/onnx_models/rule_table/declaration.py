"""The table of rules: how each ONNX operator is converted.

The signature of a rule is its declaration. After ``context`` come the operator's inputs in ONNX's order:

* ``MLOperand``: an operand; a static value becomes a constant;
* ``StaticValue``: must be known, or the node is refused (shapes, axes, pads);
* ``Value``: either;
* ``... | None``: may be absent, ``*inputs`` any number.

Keyword parameters are attributes by their ONNX names. An absent attribute has the default that ONNX gives it in the
operator's version, else the parameter's own. Attributes and inputs that a rule does not name are not supported: they
must be absent or have their default. A rule that would be wrong in a corner calls ``refuse()``.

Of an operator that ONNX does not have (``com.microsoft.…``) the signature is all that is known: it names every
attribute, with its default and, in the annotation, its type.
"""

import inspect
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Final, Literal, TypeVar, get_args, get_type_hints

import attrs

from webnn_py.onnx_models.conversion.context import ConversionContext, Result, StaticValue, Value
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand

NEVER_IN_SHAPES: Final = frozenset(
    {
        "activation",
        "attention",
        "block_quantized",
        "convolution",
        "early_opsets",
        "fused_operators",
        "linear_attention",
        "matrix",
        "microsoft_attention",
        "normalization",
        "pooling",
        "quantized_products",
        "quantized_elementwise",
        "quantized_recurrent",
        "recurrent",
        "resampling",
    }
)
"""Categories whose operators no model computes shapes with."""

InputKind = Literal["operand", "static", "either"]

_KINDS: Mapping[Any, InputKind] = {MLOperand: "operand", StaticValue: "static", Value: "either"}


@attrs.frozen
class InputParameter:
    """One input that a rule takes."""

    name: str
    kind: InputKind
    required: bool


@attrs.frozen
class Rule:
    """How an operator is converted, in one or more of its versions.

    Attributes:
        function: the rule itself.
        inputs: the inputs that it takes.
        variadic: what it takes any number of beyond those, or None.
        attributes: the attributes that it takes, with its own defaults; required ones have ``inspect``'s "empty".
        attribute_types: their annotations, without None.
    """

    function: Callable[..., Result]
    inputs: tuple[InputParameter, ...]
    variadic: InputParameter | None
    attributes: Mapping[str, object]
    attribute_types: Mapping[str, object]

    @property
    def category(self) -> str:
        """The module that has the rule."""
        return self.function.__module__.rpartition(".")[2]

    @property
    def may_compute_shapes(self) -> bool:
        """Whether its result may be needed while building; if not, the device computes it like any other."""
        return self.category not in NEVER_IN_SHAPES

    @classmethod
    def declared_by(cls, function: Callable[..., Result]) -> "Rule":
        """Read a rule's signature."""
        hints = get_type_hints(function)
        inputs: list[InputParameter] = []
        variadic: InputParameter | None = None
        attributes: dict[str, object] = {}
        types: dict[str, object] = {}
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                attributes[parameter.name] = parameter.default
                types[parameter.name] = _without_none(hints[parameter.name])
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                variadic = _input_parameter(parameter, hints[parameter.name])
            else:
                inputs.append(_input_parameter(parameter, hints[parameter.name]))
        return cls(function, tuple(inputs), variadic, attributes, types)


def _without_none(annotation: Any) -> object:
    if isinstance(annotation, UnionType):
        (annotation,) = (kind for kind in get_args(annotation) if kind is not type(None))
    return annotation


def _input_parameter(parameter: inspect.Parameter, annotation: Any) -> InputParameter:
    for present, kind in _KINDS.items():
        if annotation in (present, present | None):
            return InputParameter(parameter.name, kind, annotation == present)
    raise NotImplementedError(f"no kind of input is known for the annotation {annotation!r}")


Rules = Mapping[str, Mapping[int, Rule]]
"""Rules by operator and version of the operator."""

TABLE: dict[str, dict[int, Rule]] = {}
"""What has been registered so far; ``registry`` has it complete."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Result])


def rule(operator: str, *versions: int) -> Callable[[FunctionT], FunctionT]:
    """Register a rule.

    Args:
        operator: the ONNX operator; before that of another domain stands the domain, with a dot.
        versions: the versions of the operator (the opsets in which ONNX changed it) that the rule is right for.
            Others are refused, later ones too: what ONNX may change in them cannot be known.
    """

    def register(function: FunctionT) -> FunctionT:
        declared = Rule.declared_by(function)
        by_version = TABLE.setdefault(operator, {})
        for version in versions:
            if version in by_version:
                raise RuntimeError(f"version {version} of {operator} has two rules")
            by_version[version] = declared
        return function

    return register


def one_to_one(onnx_operator: str, operator: Operator[..., Any], *versions: int, module: str) -> None:
    """Register a rule for an ONNX operator that is a WebNN operator without options, of one or two operands."""

    def unary(context: ConversionContext, x: MLOperand) -> MLOperand:
        return context.apply(operator, x)

    def binary(context: ConversionContext, a: MLOperand, b: MLOperand) -> MLOperand:
        return context.apply(operator, a, b)

    operands = [parameter for parameter in operator.parameters.values() if parameter.is_operand]
    function = unary if len(operands) == 1 else binary
    function.__module__ = module
    rule(onnx_operator, *versions)(function)
