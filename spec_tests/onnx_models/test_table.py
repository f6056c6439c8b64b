import importlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import defs
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from spec_tests.onnx_models.single_node import Case, assert_refused, node
from spec_tests.support.cells import cells
from webnn_py.core.operators.operand import MLOperand
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.conversion.function_bodies import has_body
from webnn_py.onnx_models.folding.evaluation import FOLDED
from webnn_py.onnx_models.rule_table.declaration import TABLE, Rule, rule
from webnn_py.onnx_models.rule_table.registry import RULES
from webnn_py.onnx_models.rule_table.schemas import declared_schema

RULE_MODULES = [path.stem for path in (Path(__file__).parents[2] / "webnn_py/onnx_models/rules").glob("[!_]*.py")]
CATEGORIES = sorted([*RULE_MODULES, "function_bodies"])
REGISTERED = {(operator, version) for operator, versions in RULES.items() for version in versions}
DEFINED = {
    (schema.name, schema.since_version)
    for schema in defs.get_all_schemas_with_history()
    if not schema.domain and schema.name not in {"Bernoulli", *FOLDED} and has_body(schema)
} - REGISTERED
"""Operators without a rule that ONNX defines by a function, with their versions; Bernoulli is random."""


def cases_of(category):
    """Return the cases of the tests of a category."""
    module = importlib.import_module(f"spec_tests.onnx_models.rules.test_{category}")
    axes = [axis for thing in vars(module).values() for axis in getattr(thing, "axes", ())]
    return [case for axis in axes for _, (case, *_) in axis.points if isinstance(case, Case)]


def compared_versions(category):
    """Return the operators of a category's cases, with their versions."""
    return {(case.operator, case.version) for case in cases_of(category)}


def test_every_rule_is_compared_in_each_of_its_versions():
    assert set().union(*map(compared_versions, RULE_MODULES)) == REGISTERED


def test_every_operator_that_a_function_defines_is_compared_in_each_of_its_versions():
    assert compared_versions("function_bodies") == DEFINED


@cells("category", RULE_MODULES)
def test_operators_are_compared_in_the_category_of_their_rule(category):
    assert {RULES[case.operator][case.version].category for case in cases_of(category)} == {category}


OWN, FOREIGN = (sorted(item for item in REGISTERED if defs.has(item[0]) is is_own) for is_own in (True, False))


@cells(("operator", "version"), OWN)
def test_rules_agree_with_the_declarations_of_onnx(operator, version):
    schema = defs.get_schema(operator, version, "")
    declared = RULES[operator][version]
    assert schema.since_version == version
    for item in declared.inputs[schema.max_input :]:  # of later versions, or attributes in this one
        assert item.name in schema.attributes or not item.required, item.name
    assert (declared.variadic is not None) == (schema.max_input > 100)
    for name, default in declared.attributes.items():
        newer = defs.get_schema(operator).attributes
        assert name in schema.attributes or (name in newer and default is not None) or default is None, name


NEW_IN_1_32 = {"k_norm_epsilon", "q_norm_epsilon"}
"""Attributes that onnxruntime 1.31 does not know."""


@cells(("operator", "version"), FOREIGN)
def test_rules_of_other_operators_agree_with_the_declarations_of_onnxruntime(operator, version):
    versions = {
        (f"{item.domain}.{item.name}".lstrip("."), item.since_version): item for item in get_all_operator_schema()
    }
    ours, theirs = declared_schema(operator, version), versions[operator, version]
    assert [item.option.name for item in ours.inputs] == [item.option.name for item in theirs.inputs][
        : len(ours.inputs)
    ]
    known = {name for name in ours.attributes if name in theirs.attributes or name not in NEW_IN_1_32}
    assert {name: item.type.name for name, item in ours.attributes.items() if name in known} == {
        name: item.type.name for name, item in theirs.attributes.items()
    }
    for name, item in theirs.attributes.items():
        default = onnx.AttributeProto.FromString(item._default_value)
        if default.type == onnx.AttributeProto.FLOAT:
            assert np.float32(RULES[operator][version].attributes[name]) == default.f, name
        elif default.type == onnx.AttributeProto.STRING:
            assert RULES[operator][version].attributes[name] == default.s.decode(), name
        elif default.type == onnx.AttributeProto.INT:
            assert RULES[operator][version].attributes[name] == default.i, name


def test_a_version_has_one_rule():
    def example(context: ConversionContext, x: MLOperand) -> MLOperand: ...

    with pytest.raises(RuntimeError, match="version 14 of Add has two rules"):
        rule("Add", 14)(example)


def test_a_signature_declares_a_rule():
    def example(
        context: ConversionContext, x: MLOperand, w: MLOperand | None = None, *, axis: int, alpha: float = 2.0
    ) -> MLOperand:
        return x

    declared = Rule.declared_by(example)
    assert [(item.name, item.kind, item.required) for item in declared.inputs] == [
        ("x", "operand", True),
        ("w", "operand", False),
    ]
    assert list(declared.attributes) == ["axis", "alpha"]
    assert declared.variadic is None


def test_an_annotation_that_means_nothing_is_refused():
    def example(context: ConversionContext, x: int) -> MLOperand: ...

    with pytest.raises(NotImplementedError, match="no kind of input is known for the annotation <class 'int'>"):
        Rule.declared_by(example)


@cells(
    ("operator", "version", "inputs", "attributes", "message"),
    [
        ("Attention", 23, 8, {}, "input past_value is given; it is not supported"),
        (
            "Attention",
            24,
            3,
            {"left_window_size": 1},
            "attribute left_window_size is 1; the operator has no such attri",
        ),
        ("Squeeze", 11, 2, {}, "input data is given; it is not supported"),
        ("Squeeze", 13, 1, {"axes": [0]}, "attribute axes is (0,); the operator has no such attribute"),
        ("Unsqueeze", 11, 1, {}, "attribute axes is missing; it is needed"),
        ("BatchNormalization", 9, 5, {"training_mode": 1}, "attribute training_mode is 1; the operator has no such"),
        ("QuantizeLinear", 13, 3, {"block_size": 2}, "attribute block_size is 2; the operator has no such attribute"),
    ],
)
async def test_a_version_takes_only_the_inputs_and_attributes_that_it_has(  # noqa: PLR0917 - a row of the table
    context, operator, version, inputs, attributes, message
):
    x = np.ones((1, 1, 2, 2), np.float32)
    (case,) = node(operator, version, *[x] * inputs, **attributes)
    assert_refused(context, case, message)


def test_the_register_is_the_table():
    assert RULES is TABLE
