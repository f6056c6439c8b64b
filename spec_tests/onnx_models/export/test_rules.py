"""Every operator can be written, by a rule in its own category."""

from webnn_py.core.operators.registry import OPERATORS
from webnn_py.onnx_export.registry import RULES


def test_every_operator_has_a_rule_and_no_other_has():
    assert set(RULES) == set(OPERATORS)


def test_rules_stand_in_the_category_of_their_operator():
    for name, rule in RULES.items():
        assert rule.__module__.rpartition(".")[2] == OPERATORS[name].category, name
