"""The specification: its IDL, as the package ships it, and the limits that stand in tables of its text."""

import json
from pathlib import Path

from webnn_py.javascript import descriptions

API = descriptions.of_specification()
_FACTS = json.loads(Path(__file__).with_name("spec_facts.json").read_text(encoding="utf-8"))
LIMITS = _FACTS["limits"]
"""Rows of limits, by the names of the operators that they are for."""

REVISIONS = {API["source"], _FACTS["source"]}


def members(dictionary):
    """The members of a dictionary, those that it inherits last."""
    found = []
    while dictionary is not None:
        found += API["dictionaries"][dictionary]["members"]
        dictionary = API["dictionaries"][dictionary]["parent"]
    return found


def text_of(idl_type):
    """A type in one line, "enforced" before what has ``[EnforceRange]``."""
    kind = idl_type["kind"]
    if kind == "sequence":
        return f"sequence<{text_of(idl_type['of'])}>"
    if kind == "union":
        return f"({' or '.join(map(text_of, idl_type['of']))})"
    return ("enforced " if "enforceRange" in idl_type else "") + idl_type.get("name", kind)


def _parameters(overload):
    """Every parameter by name: type, default, and whether it is a member of the options."""
    parameters = {}
    for argument in overload["arguments"]:
        if argument["optional"]:
            for member in members(argument["type"]["name"]):
                parameters[member["name"]] = {**member, "option": True}
        else:
            parameters[argument["name"]] = {**argument, "required": True, "option": False}
    return parameters


def _operators():
    operations = API["interfaces"]["MLGraphBuilder"]["operations"]
    for operation in operations:
        if operation["name"] not in {"input", "constant", "build"}:
            (overload,) = operation["overloads"]
            yield operation["name"], {"returns": text_of(overload["returns"]), "parameters": _parameters(overload)}


OPERATORS = dict(_operators())
"""By the specification's name: what the method returns, and its parameters."""
