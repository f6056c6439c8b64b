"""The members of the proposal "dynamic shapes", for the description of the API where ``--experimental`` asks for it."""

import copy
from typing import Any, Final

from webnn_py.script.dynamic_shapes import MLDynamicDimension

_UNSIGNED_LONG: Final = {"kind": "unsigned long", "enforceRange": True}
_NAME: Final = {"kind": "DOMString"}
_NUMBER_OR_NAME: Final = {"kind": "union", "of": [_UNSIGNED_LONG, _NAME]}
_DYNAMIC_DIMENSION: Final = {
    "parent": None,
    "members": [
        {"name": "name", "type": _NAME, "required": True},
        {"name": "maxSize", "type": _UNSIGNED_LONG, "required": True},
        {"name": "minSize", "type": _UNSIGNED_LONG, "required": False, "default": 1},
    ],
}
_DIMENSION: Final = {
    "kind": "union",
    "of": [_UNSIGNED_LONG, _NAME, {"kind": "dictionary", "name": "MLDynamicDimension"}],
}
_NAMED_SHAPES: Final = {
    "kind": "record",
    "key": {"kind": "USVString"},
    "of": {"kind": "sequence", "of": _UNSIGNED_LONG},
}
_COMPUTE_SHAPES: Final = {
    "name": "computeShapes",
    "overloads": [
        {
            "returns": _NAMED_SHAPES,
            "arguments": [{"name": "inputShapes", "type": _NAMED_SHAPES, "optional": False}],
        }
    ],
}
_SIZED: Final = {"newShape", "starts", "sizes", "beginningPadding", "endingPadding", "repetitions"}
"""The operators' arguments in which a name may stand for its size."""


def with_dynamic_shapes(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description with named dimensions, and ``computeShapes()``."""
    changed = copy.deepcopy(description)
    dictionaries, interfaces = changed["dictionaries"], changed["interfaces"]
    dictionaries["MLDynamicDimension"] = _DYNAMIC_DIMENSION
    members = copy.deepcopy(dictionaries["MLOperandDescriptor"]["members"])
    next(member for member in members if member["name"] == "shape")["type"] = {"kind": "sequence", "of": _DIMENSION}
    dictionaries["MLInputOperandDescriptor"] = {"parent": None, "members": members}
    interfaces["MLGraph"]["operations"].append(_COMPUTE_SHAPES)
    shape = next(attribute for attribute in interfaces["MLOperand"]["attributes"] if attribute["name"] == "shape")
    shape["type"] = {"kind": "frozenArray", "of": _NUMBER_OR_NAME}
    for operation in interfaces["MLGraphBuilder"]["operations"]:
        for argument in (argument for overload in operation["overloads"] for argument in overload["arguments"]):
            if operation["name"] == "input" and argument["name"] == "descriptor":
                argument["type"] = {"kind": "dictionary", "name": "MLInputOperandDescriptor"}
            if argument["name"] in _SIZED:
                argument["type"] = {"kind": "sequence", "of": _NUMBER_OR_NAME}
    return changed


def dimension(given: Any) -> Any:
    """Return a dimension of an input as Python has it: a dictionary becomes an ``MLDynamicDimension``."""
    if not isinstance(given, dict):
        return given
    return MLDynamicDimension(given["name"], given["maxSize"], given["minSize"])


def shape_for_scripts(shape: tuple[object, ...]) -> list[object]:
    """Return a shape as scripts see it: sizes that are known at dispatch only by their texts."""
    return [size if isinstance(size, int) else str(size) for size in shape]
