"""The interfaces, enumerations and support limits of the IDL, member by member, under Python's names."""

import inspect
import re
from typing import get_args

import pytest

import webnn_py
from spec_tests.idl import specification
from spec_tests.idl.differences import BEYOND
from webnn_py.core.operators.declaration import spec_name_of
from webnn_py.core.operators.registry import OPERATORS

INTERFACES = specification.API["interfaces"]

MEMBERS = {
    "ML": {"createContext": "create_context"},
    "MLContext": {
        "accelerated": "accelerated",
        "lost": "lost",
        "dispatch": "dispatch",
        "createTensor": "create_tensor",
        "createConstantTensor": "create_constant_tensor",
        "readTensor": "read_tensor",
        "writeTensor": "write_tensor",
        "opSupportLimits": "op_support_limits",
        "destroy": "destroy",
    },
    "MLGraph": {"destroy": "destroy"},
    "MLOperand": {"dataType": "data_type", "shape": "shape"},
    "MLTensor": {
        "dataType": "data_type",
        "shape": "shape",
        "readable": "readable",
        "writable": "writable",
        "constant": "constant",
        "destroy": "destroy",
    },
}


@pytest.mark.parametrize("interface", MEMBERS)
def test_every_member_of_the_interface_is_there_and_documented(interface):
    parts = INTERFACES[interface]["attributes"] + INTERFACES[interface]["operations"]
    assert set(MEMBERS[interface]) == {part["name"] for part in parts}
    for member in MEMBERS[interface].values():
        assert inspect.getdoc(getattr(getattr(webnn_py, interface), member)), member


@pytest.mark.parametrize(
    ("interface", "member"),
    [
        *[(interface, None) for interface in (*MEMBERS, "MLGraphBuilder")],
        *[("MLGraphBuilder", name) for name in ("input", "constant", "build")],
        *[
            (interface, member)
            for interface, members in MEMBERS.items()
            for member in members.values()
            if interface != "ML" and inspect.isfunction(getattr(getattr(webnn_py, interface), member))
        ],
    ],
)
def test_documentation_names_the_section_and_what_comes_out(interface, member):
    thing = getattr(webnn_py, interface)
    thing = thing if member is None else getattr(thing, member)
    said = inspect.getdoc(thing)
    assert re.search('[sS]ection "', said)
    if member is None:
        return
    assert re.search("^Raises:|[Rr]ejected|Raises nothing|enforced", said, re.MULTILINE)
    signature = inspect.signature(thing)
    assert (signature.return_annotation == "None") or re.search("^Returns", said, re.MULTILINE)
    options = [name for name in signature.parameters if name != "self"]
    assert all(re.search(f"^    {name}: ", said, re.MULTILINE) for name in options)


def test_the_builder_has_every_method_of_the_interface():
    names = {operator.spec_name: name for name, operator in OPERATORS.items()}
    for operation in INTERFACES["MLGraphBuilder"]["operations"]:
        member = operation["name"]
        method = getattr(webnn_py.MLGraphBuilder, names.get(member, member))
        assert inspect.getdoc(method), member
        assert "self" in inspect.signature(method).parameters, member


def test_both_names_of_the_buffer_are_one_object():
    assert webnn_py.MLTensor is webnn_py.MLBuffer
    for name in ("create", "create_constant", "read", "write"):
        assert getattr(webnn_py.MLContext, f"{name}_tensor") is getattr(webnn_py.MLContext, f"{name}_buffer")


@pytest.mark.parametrize(
    ("enumeration", "alias"),
    [("MLPowerPreference", webnn_py.MLPowerPreference), ("MLOperandDataType", webnn_py.MLOperandDataType)],
)
def test_enumerations_have_the_specs_values(enumeration, alias):
    assert list(get_args(alias)) == specification.API["enums"][enumeration]


async def test_support_limits_have_a_member_for_every_operator_and_operand(numpy_context):
    limits = numpy_context.op_support_limits()
    expected = {member["name"]: member["type"] for member in specification.members("MLOpSupportLimits")}
    python_names = {operator.spec_name: name for name, operator in OPERATORS.items()}
    top = {
        "preferredInputLayout": "preferred_input_layout",
        "maxTensorByteLength": "max_tensor_byte_length",
        "input": "input",
        "constant": "constant",
        "output": "output",
    }
    beyond = {python_names[name] for name in BEYOND}
    assert {python_names.get(name) or top[name] for name in expected} | beyond == set(limits)
    for name, operator in OPERATORS.items():
        if name in beyond:
            continue
        row = {member["name"] for member in specification.members(expected[operator.spec_name]["name"])}
        assert {spec_name_of(member) for member in limits[name]} == row, operator.spec_name
        for operand in limits[name].values():
            assert set(operand) == {"data_types", "rank_range"}
            assert set(operand["rank_range"]) == {"min", "max"}
