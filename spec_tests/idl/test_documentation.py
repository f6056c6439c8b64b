"""Every operator's docstring has all its parts, and says what is enforced and what the specification says."""

import inspect
import json
import re
from pathlib import Path

import numpy as np

from spec_tests.idl.differences import BEYOND
from spec_tests.operators.minimal import Tensor, draw_operands, minimal, operand_rows, source
from spec_tests.support.cells import cells
from webnn_py import MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.operator_documentation import SPECIFICATION, documentation, written

FACTS = json.loads(Path(__file__).with_name("spec_facts.json").read_text(encoding="utf-8"))
PARTS = ["Args", "Returns", "Raises", "Data types and ranks", "Specification"]
EVERY_OPERATOR = cells("name", OPERATORS)
OF_THE_OPERANDS_SHAPE = [name for name, operator in OPERATORS.items() if not written(operator)[2]]


def parts_of(name):
    """The parts of a method's docstring by their titles; what comes first is called Summary."""
    texts = re.split(r"^([A-Z][a-z ]+):\n(?=    )", inspect.getdoc(getattr(MLGraphBuilder, name)), flags=re.MULTILINE)
    return {"Summary": texts[0]} | dict(zip(texts[1::2], texts[2::2], strict=True))


def entries_of(part):
    """The entries of a part by name, each on one line."""
    entries = re.split(r"^    (\w+): ", part, flags=re.MULTILINE)[1:]
    return {name: " ".join(text.split()) for name, text in zip(entries[::2], entries[1::2], strict=True)}


def data_types_in(text, operator):
    """The data types that a text allows: names, all, or those of an operand."""
    if "any data type" in text or "all data types" in text:
        return set(DATA_TYPES)
    operand = re.search(r"data type of ``(\w+)``", text)
    if operand is not None:
        return data_types_in(documentation(operator).limits[operand[1]].partition(";")[0], operator)
    return set(re.findall(r"\bu?int\d+\b|\bfloat\d+\b", text))


def ranks_in(text, operator):
    """The ranks that a text allows: numbers, or those of an operand."""
    operand = re.search(r"rank of ``(\w+)``", text)
    if operand is not None:
        return ranks_in(documentation(operator).limits[operand[1]].partition(";")[0], operator)
    low, high = re.search(r"rank (\d)(?: to (\d))?", text).groups()
    return {"min": int(low), "max": int(high or low)}


@EVERY_OPERATOR
def test_a_docstring_has_all_parts_in_order(name):
    parts = parts_of(name)
    assert list(parts) == ["Summary", *PARTS]
    assert all(text.strip() for text in parts.values())
    assert max(map(len, inspect.getdoc(getattr(MLGraphBuilder, name)).splitlines())) <= 120


@EVERY_OPERATOR
def test_each_parameter_is_described(name):
    described = entries_of(parts_of(name)["Args"])
    assert list(described) == list(OPERATORS[name].signature.parameters)
    for parameter, meaning in described.items():
        assert len(meaning.split()) > 1, parameter
        assert meaning.endswith("."), parameter


@EVERY_OPERATOR
def test_a_declaration_describes_no_parameter_that_it_lacks(name):
    operator = OPERATORS[name]
    described = written(operator)[1]
    assert set(described) <= set(operator.signature.parameters)
    assert not described or {*described, "label"} == set(operator.signature.parameters)


@EVERY_OPERATOR
async def test_the_limits_that_are_said_are_enforced_on_numpy(numpy_context, name):
    limits = numpy_context.op_support_limits()[name]
    said = entries_of(parts_of(name)["Data types and ranks"])
    assert list(said) == list(limits)
    for operand, text in said.items():
        allowed = text.partition(";")[0]
        assert data_types_in(allowed, OPERATORS[name]) == set(limits[operand]["data_types"]), operand
        assert ranks_in(allowed, OPERATORS[name]) == limits[operand]["rank_range"], operand


@EVERY_OPERATOR
def test_what_is_required_of_every_device_is_said_as_declared(name):
    operator = OPERATORS[name]
    for operand, text in entries_of(parts_of(name)["Data types and ranks"]).items():
        _, _, required = text.partition("; on every device ")
        row = operator.limits[operand]
        assert data_types_in(required, operator) == set(row.required), operand
        assert ranks_in(required, operator) == {"min": row.required_ranks.min, "max": row.required_ranks.max}, operand


@cells("name", [name for name, operator in OPERATORS.items() if operator.spec_name not in BEYOND])
def test_the_section_is_the_one_that_has_the_method(name):
    expected = FACTS["sections"][OPERATORS[name].spec_name]
    said = " ".join(parts_of(name)["Specification"].split())
    assert said == f'Section "{expected["title"]}", {SPECIFICATION}#{expected["anchor"]}'


@cells("name", OF_THE_OPERANDS_SHAPE)
async def test_an_output_that_is_not_described_has_the_shape_of_the_operands(numpy_context, name):
    operator, builder = OPERATORS[name], MLGraphBuilder(numpy_context)
    ranks = {operand: 3 - index for index, operand in enumerate(operand_rows(operator))}
    assert all(source(operator, operand, "rank_of") == operand for operand in ranks)
    arguments = minimal(name, rank=ranks)
    shapes = [value.shape for value in arguments.values() if isinstance(value, Tensor)]
    output = getattr(builder, name)(**draw_operands(builder, arguments))
    assert output.shape == np.broadcast_shapes(*shapes)
    assert parts_of(name)["Returns"].strip().startswith("The results, of the shape")
