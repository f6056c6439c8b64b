"""With next to no scratch the numpy device's kernels cut everything into blocks, and compute the same."""

import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.running import Computed
from webnn_py.devices.numpy.kernels import matrix


@pytest.mark.sampled(11)
@pytest.mark.parametrize("least", [64, 1000], ids="{} bytes".format)
@pytest.mark.parametrize("file", [pytest.param(file, id=file.operator) for file in load_all()])
def test_cases_compute_the_same_with_little_scratch(monkeypatch, tighten, file, least):
    tighten(least)
    monkeypatch.setattr(matrix, "WIDENED", least // 4)
    computed = Computed.of("numpy", file)
    wrong = {case.name: words for case in file.cases if (words := computed.what_is_wrong(case))}
    assert not wrong
