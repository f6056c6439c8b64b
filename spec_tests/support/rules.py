"""Tests of rules: a drawing, the drawing that it becomes, drawings that stay as they are, and the values of each."""

from functools import partial

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Input
from webnn_py.devices.rewriting.rule import RuleBuilder, apply_rules


class DrawingBuilder(RuleBuilder):
    """Draws graphs, fused operators among them, and takes arrays for constants, as users' builders do."""

    def constant(self, value, **options):
        if not isinstance(value, np.ndarray | np.generic):
            return super().constant(value, **options)
        array = np.asarray(value)
        return self.operand(Constant(MLOperandDescriptor(array.dtype.name, array.shape), array))


def drawn(draw, shape, data_type="float32"):
    """The graph of one input, called x, that a function of a builder and an operand draws."""
    builder, x = DrawingBuilder(), Input(MLOperandDescriptor(data_type, tuple(shape)), "x")
    made = Graph.reaching({"y": builder.value(draw(builder, builder.operand(x)))})
    return Graph({"x": x}, made.outputs, made.nodes)


def text_of(graph):
    """A line for each node, with its operands by what makes them; the same for graphs that compute the same."""
    names = {value: f"input {name}" for name, value in graph.inputs.items()}
    lines = []
    for number, node in enumerate(graph.nodes):
        operands = ", ".join(f"{name}={_name(value, names)}" for name, value in node.operands.items())
        options = {name: _rounded(value) for name, value in node.options.items() if value is not None}
        lines.append(f"{number}: {node.operator.name}({operands}, {options}) → {', '.join(map(str, node.outputs))}")
        names |= {value: f"{number}[{value.index}]" for value in node.results}
    return "\n".join([*lines, *(f"{name} = {_name(value, names)}" for name, value in graph.outputs.items())])


def _name(value, names):
    if isinstance(value, tuple):
        return [_name(item, names) for item in value]
    if isinstance(value, Constant):
        return f"{value.descriptor} {_rounded(np.asarray(value.data).ravel()[:8].tolist())}"
    return names[value]


def _rounded(value):
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def check_each(cases, check):
    """Check every case, and name all that fail."""
    found = []
    for name, case in cases.items():
        try:
            check(case)
        except AssertionError as error:
            found.append(f"{name}: {error}")
    if found:
        raise AssertionError("\n".join(found))


def assert_becomes(rule, shape, data_type, drawings):
    """Each drawing becomes the drawing that it is paired with."""

    def check(pair):
        draw, expected = (partial(drawn, shape=shape, data_type=data_type)(one) for one in pair)
        got, wanted = text_of(apply_rules(draw, [rule], [], [])), text_of(expected)
        assert got == wanted, f"\n{got}\nshould be\n{wanted}"

    check_each(drawings, check)


def assert_stays(rule, shape, drawings, data_type="float32"):
    """Each drawing stays as it is, for the reason that it is paired with: "" where the rule's drawing is not found."""

    def check(pair):
        draw, reason = pair
        graph = drawn(draw, shape, data_type)
        refused = []
        assert apply_rules(graph, [rule], [], refused) is graph, "the rule was applied"
        reasons = [one.reason for one in refused]
        assert any(reason in one for one in reasons) if reason else not reasons, f"refused for {reasons}"

    check_each(drawings, check)
