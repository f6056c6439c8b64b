"""Reading a model draws a graph and knows no device; how graphs run on each is tested with the operators."""

import pytest


@pytest.fixture(scope="module")
def backend():
    return "numpy"
