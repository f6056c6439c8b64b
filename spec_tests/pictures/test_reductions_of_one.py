"""Reductions of one element, which devices may look at their operand for, are shown like all others."""

import pytest

from spec_tests.pictures.checked_pictures import check_picture
from webnn_py import MLGraphBuilder

REDUCTIONS = ["reduce_max", "reduce_mean", "reduce_min", "reduce_sum"]


@pytest.mark.parametrize("keep_dimensions", [True, False], ids=["of the same shape", "of another shape"])
@pytest.mark.parametrize("is_between", [False, True], ids=["at the end", "between others"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
async def test_a_reduction_of_one_element_is_accounted_for(context, reduction, is_between, keep_dimensions):
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=[1, 3])
    y = getattr(b, reduction)(b.neg(x) if is_between else x, axes=[0], keep_dimensions=keep_dimensions)
    check_picture(await b.build({"y": b.exp(y) if is_between else y}, keep_source=True))
