"""Random graphs of all categories give on the reference device, by decompositions, what they give on numpy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_tests.support.random_graphs.comparing import SETTINGS, assert_same
from spec_tests.support.random_graphs.programs import CATEGORIES, programs
from webnn_py.core.descriptors import DATA_TYPES


@pytest.mark.parametrize("category", CATEGORIES)
@SETTINGS
@given(data=st.data())
def test_a_random_graph_gives_the_same_expanded(category, data):
    assert_same(data.draw(programs(category, lambda: DATA_TYPES), label="program"), "reference")
