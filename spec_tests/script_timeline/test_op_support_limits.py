"""``op_support_limits()`` returns a plain structure of exactly the limits that validation enforces."""

import json

import pytest

from spec_tests.support.abilities import data_types, longest_operand
from spec_tests.support.cells import cells
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.core.operators.registry import OPERATORS


@pytest.fixture
async def limits(context):
    return context.op_support_limits()


async def test_the_top_level_has_the_limits_of_the_whole_context(context, limits):
    assert limits["preferred_input_layout"] in {"nchw", "nhwc"}
    assert limits["max_tensor_byte_length"] == longest_operand(context)
    for name in ("input", "constant", "output"):
        assert limits[name] == {"data_types": data_types(context), "rank_range": {"min": 0, "max": 8}}


@cells("name", OPERATORS)
async def test_every_operand_and_output_of_an_operator_has_its_limits(limits, name):
    operator = OPERATORS[name]
    operands = {parameter.name for parameter in operator.parameters.values() if parameter.is_operand}
    assert limits[name].keys() == operands | set(operator.output_limits)
    assert operator.output_limits
    for row in limits[name].values():
        assert row.keys() == {"data_types", "rank_range"}
        assert row["data_types"]
        assert set(row["data_types"]) <= set(DATA_TYPES)
        assert len(set(row["data_types"])) == len(row["data_types"])
        assert 0 <= row["rank_range"]["min"] <= row["rank_range"]["max"] <= 8


@cells("name", OPERATORS)
async def test_a_device_without_restrictions_has_the_limits_of_the_declaration(limits, name):
    for operand, row in OPERATORS[name].limits.items():
        ranks = {"min": row.ranks.min, "max": row.ranks.max}
        assert limits[name][operand] == {"data_types": list(row.data_types), "rank_range": ranks}
        assert set(row.required) <= set(row.data_types)
        assert row.ranks.min <= row.required_ranks.min <= row.required_ranks.max <= row.ranks.max


async def test_the_structure_is_plain(limits):
    assert json.loads(json.dumps(limits)) == limits
