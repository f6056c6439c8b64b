"""The table of rules: how each WebNN operator is written in ONNX.

A rule is called with the body that it writes to, the node, and the operator's operands by the names of its parameters.
It returns the output, or a list of outputs. What it writes by :meth:`.Body.twin` alone stands in the model as it is: an
operator of ONNX that means the same, and is read back as this one. Anything else becomes the body of a function.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from webnn_py.core.operators.declaration import Operator
from webnn_py.onnx_export.body import OnnxTensor

Written = OnnxTensor | list[OnnxTensor]
Rule = Callable[..., Written]

TABLE: Final[dict[str, Rule]] = {}
"""The rules that are registered so far, by the operator's Python name; ``registry`` has all of them."""


def rule(operator: Operator[..., Any]) -> Callable[[Rule], Rule]:
    """Register the rule of an operator."""

    def register(function: Rule) -> Rule:
        if operator.name in TABLE:
            raise RuntimeError(f"{operator.name} has two rules")
        TABLE[operator.name] = function
        return function

    return register


def rules(write: Callable[..., Written], operators: Mapping[Operator[..., Any], str]) -> None:
    """Register the rules of operators that are written alike.

    Args:
        write: writes one, given the body, the node, the name of ONNX's operator, and the operands in their order.
        operators: those of ONNX by WebNN's.
    """
    for operator, name in operators.items():
        rule(operator)(_named(write, operator, name))


def _named(write: Callable[..., Written], operator: Operator[..., Any], name: str) -> Rule:
    def function(body: Any, node: Any, **operands: Any) -> Written:
        return write(body, node, name, *operands.values())

    function.__module__ = f"webnn_py.onnx_export.rules.{operator.category}"
    return function
