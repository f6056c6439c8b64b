"""Random graphs of all categories give on the small device, by decompositions, what they give on numpy."""

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec_tests.support.random_graphs.program import what_is_wrong
from spec_tests.support.random_graphs.programs import CATEGORIES, programs
from webnn_py import open_ml
from webnn_py.descriptors import DATA_TYPES


async def run(program):
    """What is wrong with each output in each round."""
    async with open_ml() as ml:
        small, numpy = await ml.create_context(backend="small"), await ml.create_context(backend="numpy")
        got, expected = await program.run(small), await program.run(numpy)
        assert (small.statistics().live_buffers, small.statistics().live_bytes) == (0, 0)
    return [
        f"y{index}, round {number}: {words}"
        for number, (ours, theirs) in enumerate(zip(got, expected, strict=True))
        for index, value in enumerate(program.outputs)
        if (words := what_is_wrong(value, ours[index], theirs[index], "the small device"))
    ]


EXAMPLES = settings().max_examples // 20
"""For each category."""


@pytest.mark.parametrize("category", CATEGORIES)
@settings(
    deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_a_random_graph_gives_the_same_expanded(category, data):
    program = data.draw(programs(category, lambda: DATA_TYPES), label="program")
    wrong = trio.run(run, program)
    assert not wrong, "\n".join(wrong)
