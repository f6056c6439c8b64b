"""The CUDA provider's rules compute on the CPU, too, what the oracles say: what they avoid differs there only."""

import attrs
import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Computed
from webnn_py.testing.device_cases.drawing import DRAWERS

pytest.importorskip("onnxruntime")

from webnn_py.device.on_onnxruntime import engine, providers
from webnn_py.device.on_onnxruntime.lowering import cuda_rules, rules

OWN = {name for name, rule in cuda_rules.RULES.items() if rule is not rules.RULES.get(name)}
FILES = [file for file in load_all() if file.operator in OWN | cuda_rules.DECOMPOSED.keys()]
KNOWN = {(operator, name) for owner, operator, name in EXCEPTIONS if owner == "onnxruntime"}


@pytest.mark.parametrize("file", [pytest.param(file, id=file.operator) for file in FILES])
def test_cases_compute_what_their_oracles_say(monkeypatch, file):
    mixed = attrs.evolve(engine.CPU, has_guards=False, rules=cuda_rules.RULES, capabilities=providers.CUDA.capabilities)
    monkeypatch.setattr(engine, "CPU", mixed)
    computed = Computed.of("onnxruntime", file, DRAWERS["as_written"])
    wrong = {
        case.name: words
        for case in file.cases
        if (words := computed.what_is_wrong(case)) and (file.operator, case.name) not in KNOWN
    }
    assert not wrong


def test_every_rule_of_its_own_has_cases():
    assert {file.operator for file in FILES} == OWN | cuda_rules.DECOMPOSED.keys()
