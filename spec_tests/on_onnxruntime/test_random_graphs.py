"""Random graphs of all categories give on onnxruntime what they give on numpy: to the bit, or within a computed bound.

Thousands of them, by hand: ``pytest spec_tests/on_onnxruntime/test_random_graphs.py --hypothesis-profile=thorough
--depth=full``, with another ``--hypothesis-seed=N`` each time.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_tests.support.random_graphs.comparing import SETTINGS, assert_same
from spec_tests.support.random_graphs.programs import CATEGORIES, programs
from webnn_py.core.descriptors import DATA_TYPES

pytest.importorskip("onnxruntime")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("category", CATEGORIES)
@SETTINGS
@given(data=st.data())
def test_a_random_graph_gives_the_same_as_on_numpy(category, data):
    program = data.draw(programs(category, lambda: DATA_TYPES), label="program")
    assert_same(program, "onnxruntime", threads=1)
