"""Schemas of operators: ONNX's, or where ONNX has none, one made of the rule's signature."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin

from onnx import defs

from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.problems import worded
from webnn_py.onnx_models.reading.functions import OWN_DOMAINS
from webnn_py.onnx_models.rule_table.declaration import InputParameter, Rule
from webnn_py.onnx_models.rule_table.registry import RULES

_OPTIONS: Final[Any] = defs.OpSchema.FormalParameterOption
_TYPES: Final[Mapping[object, Any]] = {
    bool: defs.OpSchema.AttrType.INT,
    int: defs.OpSchema.AttrType.INT,
    float: defs.OpSchema.AttrType.FLOAT,
    str: defs.OpSchema.AttrType.STRING,
    Sequence[int]: defs.OpSchema.AttrType.INTS,
    Sequence[float]: defs.OpSchema.AttrType.FLOATS,
    Sequence[str]: defs.OpSchema.AttrType.STRINGS,
}

EARLIER: Final = {"LayerNormalization": 17}
"""Operators that onnxruntime writes into older opsets, too, with the version that they mean."""


def schema_of(name: str, domain: str, version: int | None) -> defs.OpSchema:
    """Return the schema of an operator.

    Args:
        name: as :func:`.operator_name` has it.
        domain: the node's.
        version: of the operator set; None where the model does not say which.

    Raises:
        Refused: nothing is, or what is may be out of date.
    """
    if domain not in OWN_DOMAINS:
        if name in RULES:
            return _declared(name, 1 if version is None else version)
        if not any(known.startswith(f"{domain}.") for known in RULES):
            raise Refused(f"operators of the domain {worded(domain)} are not supported")
        raise Refused("the operator is not supported; of its domain only some are")
    opset, newest = version or 0, defs.onnx_opset_version()
    if opset > newest:
        raise Refused(f"the installed onnx package knows opsets up to {newest}")
    try:
        return defs.get_schema(name, opset, "")
    except defs.SchemaError as error:
        # Onnxruntime has operators in ONNX's domain that ONNX has not, or has later.
        if name in RULES and not defs.has(name):
            return _declared(name, opset)
        if name in EARLIER:
            return defs.get_schema(name, EARLIER[name], "")
        raise Refused(f"ONNX has no such operator in opset {opset}") from error


def _declared(name: str, opset: int) -> defs.OpSchema:
    versions = [version for version in RULES[name] if version <= opset]
    if not versions:
        raise Refused(f"the model has version {opset} of the operator's set; it must have at least {min(RULES[name])}")
    return declared_schema(name, max(versions))


@cache
def declared_schema(name: str, version: int) -> defs.OpSchema:
    """Return the schema that a rule's signature comes to."""
    rule = RULES[name][version]
    domain, _, operator = name.rpartition(".")
    inputs = [_formal(item, _OPTIONS.Single if item.required else _OPTIONS.Optional) for item in rule.inputs]
    if rule.variadic is not None:
        inputs.append(_formal(rule.variadic, _OPTIONS.Variadic))
    return defs.OpSchema(
        operator, domain, version, inputs=inputs, attributes=[_attribute(rule, name) for name in rule.attributes]
    )


def _formal(parameter: InputParameter, option: Any) -> Any:
    return defs.OpSchema.FormalParameter(parameter.name, "tensor(float)", param_option=option, is_homogeneous=False)


def _attribute(rule: Rule, name: str) -> Any:
    annotation = rule.attribute_types[name]
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    return defs.OpSchema.Attribute(name, _TYPES[type(choices[0]) if choices else annotation], "", required=False)
