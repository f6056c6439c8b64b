"""What is about drawing runs on one backend; cases and limits, which are about devices, say that they run on each."""

import pytest


@pytest.fixture(scope="module")
def backend():
    return "numpy"
