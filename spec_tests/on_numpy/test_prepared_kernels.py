"""Kernels that are prepared make views of their arrays, and look at no element before they compute."""

from functools import partial

import numpy as np
import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.running import Computed
from webnn_py.devices.numpy import executable
from webnn_py.devices.numpy.table import PreparedKernel
from webnn_py.testing.device_cases.graphs import DRAWERS


def computed_late(self, *arrays):
    """Prepare for arrays of other contents, and compute when they have theirs."""
    twins = [np.full_like(array, 77) for array in arrays]
    run = self.prepare(*twins)
    for twin, array in zip(twins, arrays, strict=True):
        np.copyto(twin, array)
    run()
    for twin, array in zip(twins, arrays, strict=True):
        if array.flags.writeable:
            np.copyto(array, twin)


@pytest.fixture
def _prepared_early(monkeypatch):
    monkeypatch.setattr(executable, "prepared", partial)
    monkeypatch.setattr(PreparedKernel, "__call__", computed_late)


@pytest.mark.sampled(11)
@pytest.mark.usefixtures("_prepared_early")
@pytest.mark.parametrize("drawer", ["as_written", "as_constant", "as_view"])
@pytest.mark.parametrize("file", [pytest.param(file, id=file.operator) for file in load_all()])
def test_cases_compute_the_same_when_elements_come_after_preparing(file, drawer):
    computed = Computed.of("numpy", file, DRAWERS[drawer])
    wrong = {case.name: words for case in file.cases if (words := computed.what_is_wrong(case))}
    assert not wrong
