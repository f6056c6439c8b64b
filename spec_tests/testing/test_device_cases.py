"""The conformance cases as other packages use them: all are there, right results pass, wrong ones fail."""

from types import SimpleNamespace

import attrs
import numpy as np
import pytest

from webnn_py.core.operators.registry import OPERATORS
from webnn_py.testing.device_cases import operator_cases
from webnn_py.testing.device_cases.graphs import DRAWERS


def first(operator, name=""):
    return next(case for case in operator_cases(operator) if name in case.name)


def test_every_operator_has_cases_whose_names_differ():
    cases = operator_cases()
    assert {case.operator for case in cases} == set(OPERATORS)
    assert len({str(case) for case in cases}) == len(cases) > 1000
    assert operator_cases("relu", "add") == [case for case in cases if case.operator in {"add", "relu"}]


def test_an_operator_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"operator_cases\(\): there is no operator 'ad'; there are .*add, "):
        operator_cases("add", "ad")


@pytest.mark.parametrize("drawn", DRAWERS)
@pytest.mark.parametrize("operator", ["softmax", "split", "concat", "conv2d"])
async def test_a_device_that_computes_right_passes(context, operator, drawn):
    await first(operator).check(context, drawn=drawn)


async def test_a_wrong_result_is_told_with_its_output_and_its_place(numpy_context):
    case = first("add", "float32")
    expected = [np.array(array) for array in case.expected]
    expected[0].reshape(-1)[0] += 1
    (tensor,) = case.raw["expected"]
    data = [float(expected[0].reshape(-1)[0]), *tensor["data"][1:]]
    wrong = attrs.evolve(case, raw={**case.raw, "expected": [{**tensor, "data": data}]})
    place = [0] * expected[0].ndim
    with pytest.raises(AssertionError) as raised:
        await wrong.check(numpy_context)
    assert str(raised.value).startswith(f"{case} (as_written): output 0: {place} is ")


async def test_a_missing_output_is_told(numpy_context):
    case = first("relu")
    wrong = attrs.evolve(case, raw={**case.raw, "expected": case.raw["expected"] * 2})
    with pytest.raises(AssertionError, match="1 outputs; expected 2"):
        await wrong.check(numpy_context)


async def test_what_a_device_lacks_is_not_supported(numpy_context):
    case = first("cast")
    assert case.is_supported(numpy_context)
    limits = numpy_context.op_support_limits()
    data_type, rank = case.inputs["input"]["data_type"], len(case.inputs["input"]["shape"])
    for row in ("cast", "input"):
        for lacking in ({"data_types": []}, {"rank_range": {"min": 0, "max": rank - 1}}):
            of_row = limits[row]["input"] if row == "cast" else limits[row]
            narrowed = {**of_row, **lacking}
            changed = {**limits, row: {**limits[row], "input": narrowed} if row == "cast" else narrowed}
            lacking_context = SimpleNamespace(op_support_limits=lambda changed=changed: changed)
            assert not case.is_supported(lacking_context), (row, lacking, data_type)


def test_cases_with_subnormal_numbers_are_known():
    assert first("abs", "extreme values").has_subnormals
    assert not first("split").has_subnormals


async def test_cases_leave_nothing_on_the_device(numpy_context):
    await first("conv2d").check(numpy_context)
    await numpy_context.device_timeline.wait_until(lambda: numpy_context.statistics().live_bytes == 0)
    assert numpy_context.statistics().live_buffers == 0
