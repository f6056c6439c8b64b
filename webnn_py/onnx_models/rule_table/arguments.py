"""Calling a rule: a node's inputs and attributes become the arguments that the rule's signature asks for."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from onnx import AttributeProto, NodeProto, defs, helper

from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.problems import shortened, worded
from webnn_py.onnx_models.rule_table.declaration import InputParameter, Rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused, refuse

FLAGS: Final = frozenset(
    {
        "align_corners",
        "allowzero",
        "antialias",
        "broadcast",
        "causal",
        "ceil_mode",
        "channels_last",
        "count_include_pad",
        "detect_negative",
        "detect_positive",
        "do_rotary",
        "exclude_outside",
        "exclusive",
        "fmod",
        "input_forget",
        "interleaved",
        "inverse",
        "is_causal",
        "is_test",
        "keepdims",
        "largest",
        "linear_before_reset",
        "noop_with_empty_axes",
        "onesided",
        "reverse",
        "rotary_interleaved",
        "saturate",
        "select_last_index",
        "sorted",
        "spatial",
        "storage_order",
        "training_mode",
        "transA",
        "transB",
        "transBatchA",
        "transBatchB",
        "unidirectional",
        "upper",
    }
)
"""Attributes that are 0 or 1. Implementations disagree on what other numbers mean, so those are refused."""


@attrs.frozen(eq=False)
class Form:
    """The parts of a schema that each node needs: the schema makes new objects at every access.

    Attributes:
        inputs: the names of its inputs.
        fewest_inputs: how many a node has at least.
        types: the number and the name of each attribute's type.
        defaults: the values of those that have one.
    """

    inputs: tuple[str, ...]
    fewest_inputs: int
    types: Mapping[str, tuple[int, str]]
    defaults: Mapping[str, object]


def form_of(schema: defs.OpSchema) -> Form:
    """Return what a schema says of nodes."""
    attributes: Mapping[str, Any] = schema.attributes
    types = {name: (attribute.type.value, attribute.type.name) for name, attribute in attributes.items()}
    names = tuple([formal.name for formal in schema.inputs])
    return Form(names, schema.min_input, types, dict(_defaults(attributes)))


def call(
    rule: Rule,
    form: Form,
    node: NodeProto,
    values: Sequence[Value | None],
    context: ConversionContext,
) -> list[Value | None]:
    """Convert a node by its rule.

    Args:
        rule: how.
        form: of the node's operator.
        node: the node.
        values: its inputs, None for absent ones.
        context: what the rule builds with.

    Returns:
        As many results as the node has outputs; None for those that nobody wants.

    Raises:
        Refused: the rule refuses, or the node has what the rule does not name.
    """
    inputs = _inputs(rule, form, values, context)
    attributes = _attributes(rule, form, node)
    result = rule.function(context, *inputs, **attributes)
    if isinstance(result, (MLOperand, np.ndarray)) and len(context.wanted) == 1:
        return [result]
    results = [result] if isinstance(result, (MLOperand, np.ndarray)) else list(result)
    results += [None] * (len(node.output) - len(results))
    for name, wanted, given in zip(node.output, context.wanted, results, strict=False):
        if wanted and given is None:
            raise Refused(f"its output {name!r} is used; this output of the operator is not supported")
    return results[: len(node.output)]


def _inputs(rule: Rule, form: Form, values: Sequence[Value | None], context: ConversionContext) -> list[Value | None]:
    arguments: list[Value | None] = []
    for index in range(max(len(values), len(rule.inputs))):
        value = values[index] if index < len(values) else None
        parameter = rule.inputs[index] if index < len(rule.inputs) else rule.variadic
        if isinstance(value, MLOperand) and parameter is not None and parameter.kind != "static":
            arguments.append(value)
            continue
        subject = f"input {form.inputs[min(index, len(form.inputs) - 1)]}"
        if parameter is not None:
            arguments.append(_argument(subject, parameter, value, context))
        elif value is not None:
            raise Refused(f"{subject} is given; it is not supported")
    return arguments


def _argument(subject: str, parameter: InputParameter, value: Value | None, context: ConversionContext) -> Value | None:
    if value is None:
        if parameter.required:
            raise Refused(f"{subject} is missing; it is needed")
        return None
    if parameter.kind == "operand":
        return context.operand(value)
    return context.required(subject, value) if parameter.kind == "static" else value


def check_form(form: Form, node: NodeProto) -> None:
    """Refuse a node without any input, with attributes of another type than the operator's, or with one given twice.

    Raises:
        Refused: it is such a node.
    """
    if form.fewest_inputs and not node.input:
        raise Refused(f"it has no inputs; it must have at least {form.fewest_inputs}")
    seen: set[str] = set()
    for item in node.attribute:
        name = item.name
        declared = form.types.get(name)
        if declared is not None and item.type != declared[0]:
            given = AttributeProto.AttributeType.Name(item.type)
            raise Refused(f"attribute {name} is of the type {given}; it must be of the type {declared[1]}")
        if name in seen:
            raise Refused(f"attribute {worded(name)} is given twice")
        seen.add(name)


def _attributes(rule: Rule, form: Form, node: NodeProto) -> dict[str, object]:
    """The attributes that the rule names; the others are refused where they are not their defaults.

    Raises:
        Refused: an attribute is not supported or missing, or a flag is neither 0 nor 1.
    """
    given = {item.name: _attribute_value(item) for item in node.attribute}
    if not given and not rule.attributes:
        return given
    defaults = form.defaults
    for name, value in given.items():
        if name not in form.types:
            raise Refused(f"attribute {shortened(name)} is {worded(value)}; the operator has no such attribute")
        if name not in rule.attributes and (name not in defaults or value != defaults[name]):
            only = f"only its default, {defaults[name]!r}, is" if name in defaults else "it is not"
            raise Refused(f"attribute {name} is {worded(value)}; {only} supported")
    arguments = {**rule.attributes, **{name: defaults[name] for name in rule.attributes if name in defaults}}
    arguments.update((name, given[name]) for name in rule.attributes if name in given)
    for name, value in arguments.items():
        if value is inspect.Parameter.empty:
            raise Refused(f"attribute {name} is missing; it is needed")
        if name in FLAGS and value not in (0, 1):
            refuse(f"attribute {name}", value, "0 or 1")
    return arguments


def _defaults(attributes: Mapping[str, defs.OpSchema.Attribute]) -> Iterator[tuple[str, object]]:
    for name, attribute in attributes.items():
        if attribute.default_value.type != AttributeProto.UNDEFINED:
            yield name, _attribute_value(attribute.default_value)


def _attribute_value(attribute: AttributeProto) -> object:
    if attribute.ref_attr_name:
        raise Refused(f"attribute {attribute.name} refers to an attribute of a function, which is not supported here")
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return _text(attribute, value)
    if attribute.type == AttributeProto.STRINGS:
        texts = {item: _text(attribute, item) for item in {*value}}
        return tuple([texts[item] for item in value])
    return tuple(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def _text(attribute: AttributeProto, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"attribute {attribute.name} is {worded(value)}, which is not UTF-8") from error
