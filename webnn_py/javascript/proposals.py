"""The members of proposals, for the description of the API where ``--experimental`` asks for them."""

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from webnn_py.descriptors import FOUR_BITS
from webnn_py.javascript.dynamic_shapes import with_dynamic_shapes

_DEVICES: Final = {"name": "devices", "type": {"kind": "frozenArray", "of": {"kind": "DOMString"}}}


def with_devices(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description with ``graph.devices``: of the proposal "graph devices", and of browsers that have it."""
    changed = copy.deepcopy(description)
    attributes = changed["interfaces"]["MLGraph"]["attributes"]
    if _DEVICES not in attributes:
        attributes.append(_DEVICES)
    return changed


_LIMITS: Final = {"kind": "dictionary", "name": "MLOpSupportLimits"}
_QUERY: Final = {
    "parent": None,
    "members": [
        {
            "name": "dataTypes",
            "type": {"kind": "sequence", "of": {"kind": "enum", "name": "MLOperandDataType"}},
            "required": False,
            "default": [],
        },
        {
            "name": "maximumRank",
            "type": {"kind": "unsigned long", "enforceRange": True},
            "required": False,
            "default": 0,
        },
        {
            "name": "operators",
            "type": {"kind": "sequence", "of": {"kind": "DOMString"}},
            "required": False,
            "default": [],
        },
    ],
}


def with_device_selection(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description with the explainer's members."""
    changed = copy.deepcopy(description)
    dictionaries, interfaces = changed["dictionaries"], changed["interfaces"]
    changed["enums"]["MLDeviceType"] = ["cpu", "gpu", "npu"]
    dictionaries["MLSupportQuery"] = _QUERY
    dictionaries["MLContextOptions"]["members"] += [
        {
            "name": "fallback",
            "type": {"kind": "sequence", "of": {"kind": "enum", "name": "MLDeviceType"}},
            "required": False,
        },
        {"name": "limits", "type": _LIMITS, "required": False},
    ]
    interfaces["MLContext"]["attributes"].append({"name": "cpuFallbackActive", "type": {"kind": "boolean"}})
    query = {"name": "query", "type": {"kind": "dictionary", "name": "MLSupportQuery"}, "optional": True, "default": {}}
    interfaces["MLContext"]["operations"].append(_promise_of("querySupport", {"kind": "DOMString"}, query))
    by_device = {"kind": "record", "key": {"kind": "DOMString"}, "of": _LIMITS}
    interfaces["ML"]["operations"].append(_promise_of("opSupportLimitsPerDevice", by_device))
    return changed


def with_int4(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description with the data types of four bits."""
    changed = copy.deepcopy(description)
    enums = changed["enums"]
    enums["MLOperandDataType"] = list(dict.fromkeys((*enums["MLOperandDataType"], *FOUR_BITS)))
    return changed


def _promise_of(name: str, of: dict[str, Any], *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "overloads": [{"returns": {"kind": "promise", "of": of}, "arguments": [*arguments]}]}


_CHANGES: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "device-selection": with_device_selection,
    "dynamic-shapes": with_dynamic_shapes,
    "graph-devices": with_devices,
    "int4": with_int4,
}


def with_proposals(description: dict[str, Any], experimental: Collection[str]) -> dict[str, Any]:
    """Return a description with the members of the proposals that are asked for."""
    for name, change in _CHANGES.items():
        if name in experimental:
            description = change(description)
    return description
