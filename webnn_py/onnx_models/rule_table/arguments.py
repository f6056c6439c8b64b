"""Calling a rule: a node's inputs and attributes become the arguments that the rule's signature asks for."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs
import numpy as np
from onnx import AttributeProto, NodeProto, defs, helper

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.problems import shortened, worded
from webnn_py.onnx_models.rule_table.declaration import REQUIRED, InputParameter, Rule

IGNORED: Final = "consumed_inputs"
"""An attribute of opset 1: a hint which inputs the outputs may overwrite."""

INT: Final = AttributeProto.INT
INTS: Final = AttributeProto.INTS
"""The types of most attributes; protobuf looks a name up at each access."""


@attrs.frozen(eq=False)
class Form:
    """The parts of a schema that each node needs: the schema makes new objects at every access.

    Attributes:
        inputs: the names of its inputs.
        fewest_inputs: how many a node has at least.
        most_inputs: how many it has at most.
        types: the number of each attribute's type.
        defaults: the values of those that have one.
    """

    inputs: tuple[str, ...]
    fewest_inputs: int
    most_inputs: int
    types: Mapping[str, int]
    defaults: Mapping[str, object]


def form_of(schema: defs.OpSchema) -> Form:
    """Return what a schema says of nodes."""
    attributes: Mapping[str, Any] = schema.attributes
    types = {name: attribute.type.value for name, attribute in attributes.items()}
    given = {name: attribute.default_value for name, attribute in attributes.items()}
    defaults = {name: _attribute_value(item) for name, item in given.items() if item.type != AttributeProto.UNDEFINED}
    names = tuple([formal.name for formal in schema.inputs])
    return Form(names, schema.min_input, schema.max_input, types, defaults)


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
        As many results as the node has outputs; None for unused ones.

    Raises:
        Refused: the rule refuses, or the node has what the rule does not name.
    """
    found = {item.name: _attribute_value(item) for item in node.attribute[:]}
    inputs = _inputs(rule, form, values, found, context)
    attributes = _attributes(rule, form, found)
    result = rule.function(context, *inputs, **attributes)
    if isinstance(result, (MLOperand, np.ndarray)) and len(context.wanted) == 1:
        return [result]
    results = [result] if isinstance(result, (MLOperand, np.ndarray)) else list(result)
    results += [None] * (len(node.output) - len(results))
    for name, wanted, given in zip(node.output, context.wanted, results, strict=False):
        if wanted and given is None:
            raise Refused(f"its output {name!r} is used; this output of the operator is not supported")
    return results[: len(node.output)]


def _inputs(
    rule: Rule,
    form: Form,
    values: Sequence[Value | None],
    attributes: Mapping[str, object],
    context: ConversionContext,
) -> list[object]:
    arguments: list[object] = []
    parameters = rule.inputs[: form.most_inputs]
    count = len(parameters)
    absent = [None] * (count - len(values))
    for index, value in enumerate([*values, *absent]):
        parameter = parameters[index] if index < count else rule.variadic
        if value is not None and parameter is not None and parameter.kind != "static":
            arguments.append(context.operand(value) if parameter.kind == "operand" else value)
            continue
        subject = f"input {form.inputs[min(index, len(form.inputs) - 1)]}"
        if parameter is not None:
            arguments.append(_argument(subject, parameter, value, context))
        elif value is not None:
            raise Refused(f"{subject} is given; it is not supported")
    if count < len(rule.inputs):
        arguments += [_from_attribute(parameter, form, attributes) for parameter in rule.inputs[count:]]
    return arguments


def _from_attribute(parameter: InputParameter, form: Form, attributes: Mapping[str, object]) -> object:
    """Return the argument for an input of later versions, which may be an attribute in this one."""
    name = parameter.name
    value = attributes.get(name, form.defaults.get(name))
    if value is None and parameter.required:
        raise Refused(f"attribute {name} is missing; it is needed")
    if value is None:
        return parameter.default
    is_empty = value == () and form.types.get(name) == INTS  # of which numpy would make floats
    return _read(f"input {name}", parameter, np.array(value, np.int64 if is_empty else None))


def _argument(subject: str, parameter: InputParameter, value: Value | None, context: ConversionContext) -> object:
    if value is None:
        if parameter.required:
            raise Refused(f"{subject} is missing; it is needed")
        return parameter.default
    return _read(subject, parameter, context.required(subject, value))


def _read(subject: str, parameter: InputParameter, value: StaticValue) -> object:
    return value if parameter.read is None else parameter.read(subject, value)


def check_form(form: Form, node: NodeProto) -> None:
    """Refuse a node without any input, with attributes of another type than the operator's, or with one given twice.

    Raises:
        Refused: it is such a node.
    """
    if form.fewest_inputs and not node.input:
        raise Refused(f"it has no inputs; it must have at least {form.fewest_inputs}")
    attributes = node.attribute[:]
    if not attributes:
        return
    types = {item.name: item.type for item in attributes}
    if len(types) == len(attributes) and types.items() <= form.types.items():  # as of nearly all nodes
        return
    seen: set[str] = set()
    for item in attributes:
        name = item.name
        declared = form.types.get(name)
        if declared is not None and item.type != declared:
            given, allowed = map(AttributeProto.AttributeType.Name, (item.type, declared))
            raise Refused(f"attribute {name} is of the type {given}; it must be of the type {allowed}")
        if name in seen:
            raise Refused(f"attribute {worded(name)} is given twice")
        seen.add(name)


def _attributes(rule: Rule, form: Form, given: Mapping[str, object]) -> dict[str, object]:
    """Return the attributes that the rule names; the others are refused where they are not their defaults.

    Raises:
        Refused: an attribute is not supported or missing, or has a value that the rule does not take.
    """
    if not given and not rule.attributes:
        return {}
    taken, own_defaults = _taken(rule, form)
    defaults = form.defaults
    for name, value in () if given.keys() <= taken else given.items():
        if name not in form.types:
            raise Refused(f"attribute {shortened(name)} is {worded(value)}; the operator has no such attribute")
        if name not in rule.parameters and (name not in defaults or value != defaults[name]) and name != IGNORED:
            only = f"only its default, {defaults[name]!r}, is" if name in defaults else "it is not"
            raise Refused(f"attribute {name} is {worded(value)}; {only} supported")
    arguments = {name: given.get(name, default) for name, default in own_defaults.items()}
    missing = [name for name, value in arguments.items() if value is REQUIRED]
    if missing:
        raise Refused(f"attribute {missing[0]} is missing; it is needed")
    for name, check in rule.checks.items():
        if arguments[name] is not None:
            arguments[name] = check(arguments[name])
    for name, (group, fields) in rule.groups.items():
        arguments[name] = group(**{field: arguments.pop(field) for field in fields})
    return arguments


@lru_cache(1024)
def _taken(rule: Rule, form: Form) -> tuple[frozenset[str], Mapping[str, object]]:
    """Return the operator's attributes that a rule takes; and the defaults of all that it takes."""
    defaults = {name: form.defaults.get(name, value) for name, value in rule.attributes.items()}
    return rule.parameters & form.types.keys(), defaults


def _attribute_value(attribute: AttributeProto) -> object:
    if attribute.ref_attr_name:
        raise Refused(f"attribute {attribute.name} refers to an attribute of a function, which is not supported here")
    kind = attribute.type
    if kind == INT:
        return attribute.i
    if kind == INTS:
        return tuple(attribute.ints[:])
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return _text(attribute, value)
    if kind == AttributeProto.STRINGS:
        texts = {item: _text(attribute, item) for item in {*value}}
        return tuple([texts[item] for item in value])
    return tuple(value) if kind == AttributeProto.FLOATS else value


def _text(attribute: AttributeProto, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"attribute {attribute.name} is {worded(value)}, which is not UTF-8") from error
