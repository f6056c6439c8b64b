"""Random graphs of all categories give on onnxruntime what they give on numpy: to the bit, or within a computed bound.

Thousands of them, by hand: ``pytest spec_tests/on_onnxruntime/test_random_graphs.py --hypothesis-profile=thorough
--depth=full``, with another ``--hypothesis-seed=N`` each time.
"""

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec_tests.support.random_graphs.program import what_is_wrong
from spec_tests.support.random_graphs.programs import CATEGORIES, programs
from webnn_py import open_ml
from webnn_py.descriptors import DATA_TYPES

pytest.importorskip("onnxruntime")

EXAMPLES = settings().max_examples // 20


async def run(program):
    """What is wrong with each output in each round."""
    async with open_ml() as ml:
        engine = await ml.create_context(backend="onnxruntime", threads=1)
        numpy = await ml.create_context(backend="numpy")
        got, expected = await program.run(engine), await program.run(numpy)
        await engine.drain()
        assert (engine.statistics().live_buffers, engine.statistics().live_bytes) == (0, 0)
    return [
        f"y{index}, round {number}: {words}"
        for number, (ours, theirs) in enumerate(zip(got, expected, strict=True))
        for index, value in enumerate(program.outputs)
        if (words := what_is_wrong(value, ours[index], theirs[index]))
    ]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("category", CATEGORIES)
@settings(
    deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_a_random_graph_gives_the_same_as_on_numpy(category, data):
    wrong = trio.run(run, data.draw(programs(category, lambda: DATA_TYPES), label="program"))
    assert not wrong, "\n".join(wrong)
