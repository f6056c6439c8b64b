"""The cases cover what there is: every operator, data type, rank from 0 to 5, option and value of an enumeration."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from spec_tests.operators.cases import load_all
from spec_tests.operators.minimal import operand_rows
from spec_tests.support.cells import cells
from webnn_py.core.operators import idl
from webnn_py.core.operators.registry import OPERATORS

FILES = {file.operator: file for file in load_all()}
EVERY_OPERATOR = cells("name", sorted(OPERATORS))
HIGHEST_RANK = 5


def tensors_of(name: str, parameter: str) -> Iterator[dict[str, Any]]:
    """The values of one operand in the cases of an operator."""
    for case in FILES[name].cases:
        given = case.inputs.get(parameter, [])
        yield from given if isinstance(given, list) else [given]


def values_of(name: str, parameter: str) -> list[Any]:
    """The values of one argument that is no operand in the cases of an operator."""
    return [case.options[parameter] for case in FILES[name].cases if parameter in case.options]


@EVERY_OPERATOR
def test_every_operator_has_cases_in_its_category(name):
    assert name in FILES, "there is no file of cases"
    file, operator = FILES[name], OPERATORS[name]
    assert file.category == operator.category
    assert file.oracle
    assert len({case.name for case in file.cases}) == len(file.cases), "two cases have one name"
    for case in file.cases:
        assert {*case.inputs, *case.options} <= operator.parameters.keys() - {"label"}, case.name


@EVERY_OPERATOR
def test_every_data_type_and_rank_of_every_operand_has_a_case(name):
    for operand, row in operand_rows(OPERATORS[name]).items():
        there = {tensor["data_type"] for tensor in tensors_of(name, operand)}
        assert not set(row.data_types) - there, f"no case has a {operand} of these data types"
        there = {len(tensor["shape"]) for tensor in tensors_of(name, operand)}
        expected = set(range(row.ranks.min, min(row.ranks.max, HIGHEST_RANK) + 1))
        assert not expected - there, f"no case has a {operand} of these ranks"


@EVERY_OPERATOR
def test_every_option_has_a_case_with_it_and_one_without_any(name):
    operator = OPERATORS[name]
    options = {key for key, parameter in operator.parameters.items() if not parameter.required} - {"label"}
    given = [{*case.inputs, *case.options} & options for case in FILES[name].cases]
    assert not options.difference(*given), "no case gives these options"
    assert not all(given), "no case leaves all options out"


@EVERY_OPERATOR
def test_every_flag_and_every_value_of_an_enumeration_has_a_case(name):
    operator = OPERATORS[name]
    for key, parameter in operator.parameters.items():
        if parameter.is_operand or key == "label":
            continue
        values = values_of(name, key)
        flat = {item for value in values for item in (value if isinstance(value, list) else [value])}
        if parameter.convert is idl.boolean:
            assert (not parameter.default) in flat, f"{key} is never {not parameter.default}"
        implied = set() if parameter.default is None else {parameter.default}
        missing = {value for value in _literals(operator.hints[key]) if isinstance(value, str)} - flat - implied
        if key == "output_data_type":
            missing &= set(operator.limits["output"].data_types)
        assert not missing, f"no case has these values of {key}"


def _literals(annotation: object) -> Iterator[object]:
    """The values that an annotation lists."""
    for item in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield item
        else:
            yield from _literals(item)
