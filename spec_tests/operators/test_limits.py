"""``op_support_limits()`` is complete, covers what every implementation must support, and is what is enforced."""

import attrs
import numpy as np
import pytest

from spec_tests.operators.minimal import Arguments, computed, draw_operands, filled, minimal, operand_rows
from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.cells import cells
from webnn_py import MLContext, MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.core.operators.registry import OPERATORS

TOP_LEVEL = {"preferred_input_layout", "max_tensor_byte_length", "input", "constant", "output"}
LABEL = "the operator that is tested"
EVERY_OPERATOR = cells("name", sorted(OPERATORS))
EVERY_OPERAND = cells(
    ("name", "operand"), [(name, operand) for name, operator in OPERATORS.items() for operand in operator.limits]
)


backend = on_each(DEVICES)


async def run(context: MLContext, name: str, arguments: Arguments) -> list[np.ndarray]:
    """Draw one operator and compute it, on zeros."""
    return list((await computed(context, name, arguments, filled(arguments, 0), label=LABEL)).values())


def replaced(arguments: Arguments, operand: str, **changes: object) -> Arguments:
    """The arguments with another data type or shape of one operand, the first where it is a list."""
    value = arguments[operand]
    if isinstance(value, list):
        return arguments | {operand: [attrs.evolve(value[0], **changes), *value[1:]]}
    return arguments | {operand: attrs.evolve(value, **changes)}


def refused(context: MLContext, name: str, arguments: Arguments, words: str) -> None:
    builder = MLGraphBuilder(context)
    with pytest.raises(TypeError) as caught:
        getattr(builder, name)(**draw_operands(builder, arguments), label=LABEL)
    assert words in str(caught.value)
    assert f"{name}() [{LABEL}]: " in str(caught.value)


async def test_there_is_a_member_for_every_operator(context):
    assert context.op_support_limits().keys() == TOP_LEVEL | OPERATORS.keys()


async def test_the_limits_are_a_fresh_plain_structure(context):
    first = context.op_support_limits()
    first["add"]["a"]["data_types"].clear()
    first["add"].clear()
    assert context.op_support_limits()["add"]["a"]["data_types"] == list(DATA_TYPES)


@EVERY_OPERATOR
async def test_the_limits_are_those_of_the_declaration_that_the_device_has(context, name):
    said, operator = context.op_support_limits()[name], OPERATORS[name]
    capabilities = context.device.backend.capabilities
    assert said.keys() == operator.limits.keys()
    for operand, row in operator.limits.items():
        can = capabilities.data_types  # what is not claimed in them is expanded into what is
        assert said[operand]["data_types"] == [data_type for data_type in row.data_types if data_type in can]
        ranks = {"min": row.ranks.min, "max": min(row.ranks.max, capabilities.max_rank)}
        assert said[operand]["rank_range"] == ranks


@EVERY_OPERAND
async def test_the_limits_contain_what_every_implementation_must_support(context, name, operand):
    said, row = context.op_support_limits()[name][operand], OPERATORS[name].limits[operand]
    assert set(said["data_types"]) >= set(row.required) & set(row.data_types)
    assert said["rank_range"]["min"] <= row.required_ranks.min
    assert said["rank_range"]["max"] >= row.required_ranks.max


@pytest.mark.sampled(23, full=2)
@EVERY_OPERATOR
async def test_every_allowed_data_type_and_rank_of_every_operand_builds_and_runs(context, name):
    limits = context.op_support_limits()[name]
    for operand in operand_rows(OPERATORS[name]):
        for data_type in limits[operand]["data_types"]:
            outputs = await run(context, name, minimal(name, data_type={operand: data_type}))
            assert outputs, (operand, data_type)
        ranks = limits[operand]["rank_range"]
        for rank in range(ranks["min"], ranks["max"] + 1):
            arguments = minimal(name, rank={operand: rank})
            tensor = arguments[operand][0] if isinstance(arguments[operand], list) else arguments[operand]
            assert len(tensor.shape) == rank, "the table of minimal calls is wrong"
            outputs = await run(context, name, arguments)
            assert outputs, (operand, rank)


@EVERY_OPERATOR
async def test_every_other_data_type_and_the_next_rank_are_refused(context, name):
    limits = context.op_support_limits()[name]
    top = context.op_support_limits()["input"]["rank_range"]["max"]
    for operand in operand_rows(OPERATORS[name]):
        for data_type in sorted(set(DATA_TYPES) - set(limits[operand]["data_types"])):
            arguments = replaced(minimal(name), operand, data_type=data_type)
            refused(context, name, arguments, f"the data type of {operand}")
        ranks = limits[operand]["rank_range"]
        for rank in {ranks["min"] - 1, ranks["max"] + 1} & set(range(top + 1)):
            arguments = replaced(minimal(name), operand, shape=(1,) * rank)
            refused(context, name, arguments, f"the rank of {operand}")


@pytest.mark.parametrize("method", ["input", "constant"])
async def test_inputs_and_constants_have_the_data_types_and_ranks_of_their_limits(context, method):
    limits, builder = context.op_support_limits()[method], MLGraphBuilder(context)

    def make(data_type: str, rank: int):
        if method == "input":
            return builder.input(f"{data_type}{rank}", data_type=data_type, shape=[1] * rank)
        return builder.constant(np.zeros([1] * rank, data_type), data_type=data_type, shape=[1] * rank)

    for data_type in limits["data_types"]:
        for rank in range(limits["rank_range"]["max"] + 1):
            assert make(data_type, rank).rank == rank
    for data_type in sorted({*DATA_TYPES, "int16", "float64"} - set(limits["data_types"])):
        with pytest.raises(TypeError, match=f"{method}\\(\\)"):
            make(data_type, 0)
    with pytest.raises(TypeError, match="rank"):
        make("float32", limits["rank_range"]["max"] + 1)


@pytest.mark.parametrize("name", ["arg_min", "arg_max", "cast"])
async def test_a_chosen_data_type_of_the_output_is_one_of_the_limits(context, name):
    allowed = context.op_support_limits()[name]["output"]["data_types"]
    option = "data_type" if name == "cast" else "output_data_type"
    for data_type in DATA_TYPES:
        arguments = minimal(name) | {option: data_type}
        if data_type in allowed:
            (output,) = await run(context, name, arguments)
            assert output.dtype == data_type
        else:
            refused(context, name, arguments, data_type)
