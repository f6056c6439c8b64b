"""No drift: every declaration says what the specification says, and every difference is listed with its reason."""

from pathlib import Path
from typing import get_args

from spec_tests.idl import specification
from spec_tests.idl.differences import BEYOND, DIFFERENCES, rendered
from spec_tests.support.cells import cells
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.core.operators import idl, limits
from webnn_py.core.operators.declaration import Operator, python_name_of
from webnn_py.core.operators.limits import RankRange
from webnn_py.core.operators.registry import OPERATORS

FACTS = specification.OPERATORS
BY_SPEC_NAME = {operator.spec_name: operator for operator in OPERATORS.values()}

CONVERTERS = {
    "MLOperand": idl.operand,
    "sequence<MLOperand>": idl.operands,
    "enforced unsigned long": idl.size_or_axis,
    "enforced long": idl.long,
    "sequence<enforced unsigned long>": idl.unsigned_longs,
    "double": idl.double,
    "(bigint or unrestricted double)": idl.ml_number,
    "sequence<float>": idl.floats,
    "boolean": idl.boolean,
    "USVString": idl.usv_string,
}


def expected_enumeration(kind):
    """The values of an enumeration, or of a sequence of it."""
    return specification.API["enums"].get(kind.removeprefix("sequence<").removesuffix(">"))


def annotated_values(operator, name):
    """The values that an argument's Literal annotation allows."""
    return [value for value in _flatten(operator.hints[name]) if isinstance(value, str)]


def _flatten(annotation):
    for item in get_args(annotation):
        yield from _flatten(item) if get_args(item) else [item]


def types_of(cell):
    return DATA_TYPES if cell == "any" else tuple(cell.split(", "))


def ranks_of(cell):
    low, _, high = cell.partition(" to ")
    if cell == "N":
        return RankRange(0, limits.MAX_RANK)
    return RankRange(int(low), limits.MAX_RANK if high == "N" else int(high or low))


LIMITS_ROWS = [
    (name, row) for names, rows in specification.LIMITS.items() for name in names.split(", ") for row in rows
]


def shown(value):
    """Return an operator's name, or that of a row's operand."""
    return value if isinstance(value, str) else value["operand"]


def row_name(operand):
    """The Python name of a limits row: ``outputs[1] if returnSequence is true`` is ``output1``."""
    if operand.startswith("outputs["):
        return "output" + operand[len("outputs[")]
    return python_name_of(operand)


def test_the_idl_and_the_limits_are_of_one_revision():
    assert len(specification.REVISIONS) == 1


def test_all_operators_are_declared_and_no_others_but_those_listed():
    missing, unlisted = set(FACTS) - set(BY_SPEC_NAME), set(BY_SPEC_NAME) - set(FACTS) - set(BEYOND)
    assert not missing
    assert not unlisted, "the specification lacks these: list them in spec_tests/idl/differences.py under BEYOND"
    assert not set(BEYOND) & set(FACTS), "the specification has these: list them no more"
    assert set(BEYOND) <= set(BY_SPEC_NAME)


@cells("name", FACTS)
def test_parameters_have_the_specs_names_order_and_kind(name):
    operator: Operator = BY_SPEC_NAME[name]
    expected = FACTS[name]["parameters"]
    required = [python_name_of(key) for key, value in expected.items() if not value["option"]]
    options = {python_name_of(key) for key, value in expected.items() if value["option"]}
    declared = list(operator.signature.parameters.values())
    assert [p.name for p in declared if p.kind is not p.KEYWORD_ONLY] == required
    assert {p.name for p in declared if p.kind is p.KEYWORD_ONLY} == options
    assert operator.returns_sequence == (FACTS[name]["returns"] == "sequence<MLOperand>")


@cells("name", FACTS)
def test_options_have_the_specs_defaults(name):
    operator = BY_SPEC_NAME[name]
    for key, value in FACTS[name]["parameters"].items():
        parameter = operator.parameters[python_name_of(key)]
        assert parameter.spec_name == key
        assert parameter.required == value["required"], key
        default = value.get("default")
        assert parameter.default == default, key
        assert type(parameter.default) is type(default) or isinstance(parameter.default, float), key


@cells("name", FACTS)
def test_arguments_are_converted_as_the_idl_types_say(name):
    operator = BY_SPEC_NAME[name]
    for key, value in FACTS[name]["parameters"].items():
        parameter = operator.parameters[python_name_of(key)]
        kind = specification.text_of(value["type"])
        if (name, key, "type") in DIFFERENCES:
            kind = kind.replace("unsigned long", "enforced unsigned long")
        enumeration = expected_enumeration(kind)
        if enumeration is not None:
            assert annotated_values(operator, parameter.name) == enumeration, key
        elif kind == "(enforced unsigned long or sequence<enforced unsigned long>)":
            assert (parameter.convert(3), parameter.convert([1, 2])) == (3, (1, 2)), key
        else:
            assert parameter.convert is CONVERTERS[kind], key


@cells(("name", "row"), LIMITS_ROWS, ids=shown)
def test_limits_rows_say_what_the_specs_tables_say(name, row):
    operator = BY_SPEC_NAME[name]
    declared = operator.limits[row_name(row["operand"])]
    differs = {column for operator, operand, column in DIFFERENCES if (operator, operand) == (name, row["operand"])}
    if row["allowed_types"].startswith("same as"):
        source = row["allowed_types"].removeprefix("same as ")
        if source in FACTS[name]["parameters"] and row_name(row["operand"]) in operator.parameters:
            assert declared.type_of == python_name_of(source)
        assert declared.data_types == operator.limits[python_name_of(source)].data_types
    elif "allowed_types" in differs:
        assert set(declared.data_types) < set(types_of(row["allowed_types"])), "the difference is gone: delete it"
    else:
        assert set(declared.data_types) == set(types_of(row["allowed_types"]))
    assert set(declared.required) == set(types_of(row["required_types"]))
    if row["allowed_ranks"].startswith("same as"):
        source = row["allowed_ranks"].removeprefix("same as ")
        if row_name(row["operand"]) in operator.parameters:
            assert declared.rank_of == python_name_of(source)
        assert declared.ranks == operator.limits[python_name_of(source)].ranks
    elif "allowed_ranks" in differs:
        assert ranks_of(row["allowed_ranks"]).min > declared.ranks.min, "the difference is gone: delete it"
    else:
        assert declared.ranks == ranks_of(row["allowed_ranks"])
        assert declared.rank_of is None
    assert declared.required_ranks == ranks_of(row["required_ranks"])


@cells("name", FACTS)
def test_limits_have_no_rows_that_the_spec_lacks(name):
    rows = next(rows for names, rows in specification.LIMITS.items() if name in names.split(", "))
    assert set(BY_SPEC_NAME[name].limits) == {row_name(row["operand"]) for row in rows}


def test_every_listed_difference_is_a_real_parameter_or_operand():
    for name, key, _column in DIFFERENCES:
        assert key in {*FACTS[name]["parameters"], *BY_SPEC_NAME[name].limits}


def test_every_listed_difference_stands_in_the_document():
    document = Path(__file__).parents[2] / "docs" / "differences.md"
    assert rendered() in document.read_text(encoding="utf-8")
