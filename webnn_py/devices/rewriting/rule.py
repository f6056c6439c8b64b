"""Rewrite rules: a pattern, and what replaces it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import attrs

from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.operators.composite import COMPOSITES
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.rewriting.passes import Pass, PassContext
from webnn_py.devices.rewriting.pattern import Match, Pattern
from webnn_py.devices.rewriting.report import AppliedRule, RefusedRule, place_of


class RuleBuilder(RewriteBuilder):
    """The builder of rules, which also has a method for each composite, fused operators among them."""

    def __getattr__(self, name: str) -> Any:
        if name not in COMPOSITES:
            raise AttributeError(name)
        return lambda *args, **kwargs: self.append(COMPOSITES[name], *args, **kwargs)


@attrs.frozen(eq=False, slots=False)
class RewriteRule:
    """A rewrite rule: drawings of a pattern to find, and the drawing that replaces it.

    It applies where nothing else reads the values between the parameters and the result, and where the replacement has
    the data type and shape of what it replaces.

    Attributes:
        name: the rule's name in reports.
        drawings: functions of a builder and of named operands; ``rewriting.pattern`` documents what they may draw.
        replacement: a function of a builder, and of any of the operands, numbers and options of a drawing, by name.
        unless: a function of any of the same (operands as values of the graph), which returns why the rule does not
            apply, or None.
        data_types: those of results for which the rule holds; None for all.
        tolerance: the relative difference that the replacement may make; 0 where it gives the same bits.
    """

    name: str
    drawings: Sequence[Callable[..., Any]]
    replacement: Callable[..., MLOperand]
    unless: Callable[..., str | None] | None = None
    data_types: Collection[str] | None = None
    tolerance: float = 0

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Return the patterns that the drawings describe."""
        return tuple(map(Pattern.from_drawing, self.drawings))

    def refusal(self, node: Node, match: Match, graph: Graph) -> str | None:
        """Return the reason why a match is not replaced; None where it is replaced."""
        if self.data_types is not None and node.outputs[0].data_type not in self.data_types:
            return f"it is of {node.outputs[0].data_type}; the rule holds for {', '.join(self.data_types)}"
        nodes = set(match.nodes.values())
        for inner in nodes - {node}:
            if not all(reader in nodes for value in inner.results for reader in graph.readers.get(value, ())):
                return f"the result of {place_of(inner)} is read elsewhere"
        return None if self.unless is None else _call(self.unless, match, match.values)

    def replace(self, node: Node, match: Match, replaced: Mapping[Value, Value]) -> Value:
        """Draw the replacement of a match.

        Args:
            node: the root.
            match: the match.
            replaced: the values that have been replaced so far, each with its replacement.
        """
        labels = [one.label for one in (node, *match.nodes.values()) if one.label]
        builder = RuleBuilder(labels[0] if labels else "", match.drawn)
        operands = {name: builder.operand(replaced.get(value, value)) for name, value in match.values.items()}
        return builder.value(_call(self.replacement, match, operands, builder))


def _call(function: Callable[..., Any], match: Match, values: Mapping[str, Any], *first: object) -> Any:
    """Call a function with the match's values, numbers and options that its parameters name."""
    given = {**values, **match.numbers, **match.options}
    return function(*first, **{name: given[name] for name in _parameters(function)[len(first) :]})


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def apply_rules(
    graph: Graph, rules: Sequence[RewriteRule], applied: list[AppliedRule], refused: list[RefusedRule]
) -> Graph:
    """Apply rules to all matches in a graph as it is; the first rule that matches a node wins.

    Args:
        graph: the graph.
        rules: the rules, in the order in which they are tried.
        applied: where they were applied is added.
        refused: where drawings were found that a condition excludes is added.
    """
    found = _found(graph, rules, refused)
    if not found:
        return graph
    replaced: dict[Value, Value] = {}

    def replace(node: Node, _current: Node) -> Mapping[Value, Value] | None:
        if node not in found:
            return None
        rule, match = found[node]
        made = rule.replace(node, match, replaced)
        if made.descriptor != node.outputs[0]:
            reason = f"the replacement has {made.descriptor}, not {node.outputs[0]}"
            refused.append(RefusedRule(rule.name, place_of(node), reason))
            return None
        applied.append(AppliedRule(rule.name, place_of(node)))
        return {node.results[0]: made}

    return rewrite(graph, replace, replaced)


def _found(
    graph: Graph, rules: Sequence[RewriteRule], refused: list[RefusedRule]
) -> dict[Node, tuple[RewriteRule, Match]]:
    """Return the rule and the match of each node whose result is to be replaced."""
    there = {node.operator for node in graph.nodes}
    by_root: dict[Operator[..., Any], list[tuple[RewriteRule, Pattern]]] = {}
    for rule in rules:
        for pattern in rule.patterns:
            if pattern.operators <= there:
                by_root.setdefault(pattern.root.operator, []).append((rule, pattern))
    found: dict[Node, tuple[RewriteRule, Match]] = {}
    taken: set[Node] = set()
    for node in graph.nodes if by_root else ():
        refusals: dict[str, str] = {}
        tried = by_root.get(node.operator, ())
        for rule, match in ((rule, match) for rule, pattern in tried for match in pattern.matches(node)):
            nodes = match.nodes.values()
            reason = "another rule replaces a part of it" if not taken.isdisjoint(nodes) else None
            reason = reason or rule.refusal(node, match, graph)
            if reason is None:
                found[node] = rule, match
                taken.update(nodes)
                break
            refusals.setdefault(rule.name, reason)
        else:
            refused += [RefusedRule(name, place_of(node), reason) for name, reason in refusals.items()]
    return found


@attrs.frozen(kw_only=True)
class RulePass(Pass):
    """A pass of rewrite rules; adjacent rule passes share one walk.

    Attributes:
        rules: the rules, in the order in which they are tried.
    """

    rules: tuple[RewriteRule, ...]

    @classmethod
    def run_together(cls, group: Sequence[RulePass], graph: Graph, context: PassContext) -> Graph:
        """Walk over the graph once, with the rules of all passes in their order."""
        rules = [rule for one in group for rule in one.rules]
        return apply_rules(graph, rules, context.applied, context.refused)
