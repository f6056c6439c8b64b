"""Tests of drawing run on one backend; those of cases and limits, which concern devices, run on each."""

import pytest


@pytest.fixture(scope="module")
def backend():
    return "numpy"
