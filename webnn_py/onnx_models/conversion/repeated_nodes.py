"""Repeated nodes, as in a loop's body: once converted, their operators are drawn again for other operands.

What a rule draws follows from the node, the descriptors of its operands and its static inputs, unless the rule asks for
more (``ConversionContext.is_repeatable``). So the operators are drawn again on other operands, with nothing to convert
or to check.
"""

from collections import Counter
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Final, Self, final

import attrs
import numpy as np
from onnx import NodeProto

from webnn_py.graph import Constant, Node, Output
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.folding.evaluation import fold
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.problems import node_name
from webnn_py.onnx_models.reading.node_order import Live, used_by
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused
from webnn_py.script.builder import MLGraphBuilder

MOST_COMPARED: Final = 64
"""The most bytes of a static input that is compared by its elements; others are compared by identity."""

LONGEST_RUN: Final = 100
"""The most nodes of a run: between runs, a conversion in steps can pause."""

MOST_MISSES: Final = 3
"""How often a run may be drawn node by node before its nodes are looked at one by one again."""


@attrs.frozen(eq=False)
class RepeatedNode:
    """A node of an inner graph, read once for all iterations: each access to a field of a message makes new objects.

    Attributes:
        node: the node.
        name: its name in labels.
        inputs: the names of its inputs, "" for absent ones.
        outputs: the names of its outputs, "" for those that it leaves out.
        wanted: for each output, whether it is used.
        used: the names that it uses, those included that its inner graphs take from outside.
    """

    node: NodeProto
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    wanted: tuple[bool, ...]
    used: frozenset[str]

    @classmethod
    def of(cls, node: NodeProto, needed: Container[str]) -> Self:
        """Read a node, of which outputs of these names are needed."""
        outputs = tuple(node.output)
        wanted = tuple([bool(name) and name in needed for name in outputs])
        return cls(node, node_name(node), tuple(node.input), outputs, wanted, frozenset(used_by(node)))


@attrs.frozen(eq=False)
class NodeRun:
    """Consecutive nodes of an inner graph, which are drawn again as one node would be.

    Attributes:
        nodes: the nodes.
        inputs: the names that they use and do not compute; "" for absent inputs.
        outputs: the names that they compute and that something behind them uses.
    """

    nodes: Sequence[RepeatedNode]
    inputs: Sequence[str]
    outputs: Sequence[str]

    @classmethod
    def of(cls, nodes: Sequence[RepeatedNode], used_behind: Container[str]) -> Self:
        """Put nodes together, of which outputs of these names are used by something behind them."""
        own = {name for node in nodes for name in node.outputs}
        inputs = dict.fromkeys([name for node in nodes for name in node.inputs if name and name not in own])
        outputs = [
            name for node in nodes for name, is_wanted in zip(node.outputs, node.wanted, strict=True) if is_wanted
        ]
        return cls(nodes, tuple(inputs), tuple([name for name in outputs if name in used_behind]))


@final
class RepeatedBody:
    """The nodes of an inner graph, in runs that grow with what is drawn again at each iteration.

    Args:
        nodes: the nodes that the inner graph's outputs need.

    Attributes:
        nodes: those.
        runs: all of them, in their order.
    """

    def __init__(self, nodes: Live) -> None:
        self.nodes = nodes
        read = [RepeatedNode.of(node, nodes.names) for node in nodes.nodes]
        self._used_behind: dict[RepeatedNode, frozenset[str]] = {}
        used = frozenset(nodes.outputs)
        for node in reversed(read):
            self._used_behind[node] = used
            used |= node.used
        self._alone: set[RepeatedNode] = set()
        self._settled: Sequence[bool] = ()
        self._missed: Counter[NodeRun] = Counter()
        self.runs = [self._run([node]) for node in read]

    def _run(self, nodes: Sequence[RepeatedNode]) -> NodeRun:
        return NodeRun.of(nodes, self._used_behind[nodes[-1]])

    def note_miss(self, run: NodeRun) -> None:
        """Note that a run had to be converted node by node."""
        self._missed[run] += 1
        self._settled = ()

    def regroup(self, again: Sequence[bool]) -> None:
        """Join runs that were drawn again one behind the other, and separate the nodes of those that are not.

        Args:
            again: for each run, whether all its nodes were drawn again.
        """
        if again == self._settled:  # by which nothing changed the last time
            return
        groups: list[list[RepeatedNode]] = []
        follows = False
        for run, is_again in zip(self.runs, again, strict=True):
            if len(run.nodes) > 1 and (not is_again or self._missed[run] > MOST_MISSES):
                self._alone.update(run.nodes)
                groups += [[node] for node in run.nodes]
                follows = False
                continue
            joins = is_again and run.nodes[0] not in self._alone
            if joins and follows and len(groups[-1]) + len(run.nodes) <= LONGEST_RUN:
                groups[-1] += run.nodes
            else:
                groups.append([*run.nodes])
            follows = joins
        if [len(run.nodes) for run in self.runs] != [len(nodes) for nodes in groups]:
            known = {tuple(run.nodes): run for run in self.runs}
            self.runs = [known.get(tuple(nodes)) or self._run(nodes) for nodes in groups]
            self._settled = ()
        else:
            self._settled = again


@attrs.frozen(eq=False)
class Drawn:
    """The result of converting a node or a run.

    Attributes:
        source: the node or the run, which is kept as its identity is part of the key.
        values: its inputs.
        operators: the operators that were drawn for it, with their results.
        names: for each operator, the name of the node that it was drawn for.
        results: its results.
    """

    source: NodeProto | NodeRun
    values: Sequence[Value | None]
    operators: Sequence[tuple[Node, Sequence[Output]]]
    names: Sequence[str]
    results: Sequence[Value | None]


@attrs.frozen(eq=False)
class DrawnAgain:
    """The operators that were drawn for a node or a run this time, and its results.

    Attributes:
        operators: the operators.
        names: for each, the name of the node that it was drawn for.
        results: the results.
    """

    operators: Sequence[Node]
    names: Sequence[str]
    results: Sequence[Value | None]


@final
class Repetition:
    """The results of converting nodes, by node and inputs.

    Args:
        builder: what they are drawn with.
    """

    def __init__(self, builder: MLGraphBuilder) -> None:
        self._builder = builder
        self._drawn: dict[Hashable, Drawn] = {}
        self._computed: dict[int, NodeProto] = {}
        self._varying: set[int] = set()
        self._bodies: dict[int, RepeatedBody] = {}

    def body(self, nodes: Live) -> RepeatedBody:
        """Return the nodes of an inner graph, which are read the first time."""
        known = self._bodies.get(id(nodes))
        if known is None:
            known = self._bodies[id(nodes)] = RepeatedBody(nodes)
        return known

    def key(self, source: NodeProto | NodeRun, values: Sequence[Value | None], wanted: Sequence[bool] = ()) -> Hashable:
        """Return what a conversion of a node or a run depends on."""
        parts: list[Hashable] = [id(source), *wanted]
        first: dict[int, int] = {}
        for index, value in enumerate(values):
            if isinstance(value, MLOperand):
                kind = type(self._builder._values[value])
                parts.append((value._descriptor, kind, first.setdefault(id(value), index)))
            elif isinstance(value, np.ndarray) and value.nbytes <= MOST_COMPARED:
                parts.append((value.dtype, value.shape, value.tobytes()))
            else:
                parts.append(id(value))
        return tuple(parts)

    def drawn_again(self, key: Hashable, values: Sequence[Value | None], prefix: str) -> DrawnAgain | None:
        """Draw for these inputs what was drawn before; None where nothing was.

        Args:
            key: what the conversion depends on.
            values: the inputs.
            prefix: what stands before the names of nodes in labels.

        Raises:
            InvalidStateError: the builder cannot draw any more.
        """
        drawn = self._drawn.get(key)
        if drawn is None:
            return None
        operands = {
            before: now
            for before, now in zip(drawn.values, values, strict=True)
            if isinstance(before, MLOperand) and isinstance(now, MLOperand)
        }
        results = [result for result in drawn.results if isinstance(result, MLOperand)]
        labels = [prefix + name for name in drawn.names]
        nodes, made = self._builder._drawn_alike(drawn.operators, operands, results, labels)
        operands.update(made)
        again = [operands[result] if isinstance(result, MLOperand) else result for result in drawn.results]
        return DrawnAgain(nodes, drawn.names, again)

    def is_varying(self, node: NodeProto) -> bool:
        """Return whether a node was computed for several values already, so that no key of its is looked up."""
        return id(node) in self._varying

    def computed(
        self, node: NodeProto, values: Sequence[Value | None], opsets: Mapping[str, int], expenses: Expenses
    ) -> Sequence[StaticValue | None] | None:
        """Compute a node that was computed before, now for other values; None where all rules have to be asked."""
        if id(node) not in self._computed:
            return None
        known = [value for value in values if not isinstance(value, MLOperand)]
        if len(known) < len(values) or any(value is not None and value.size == 0 for value in known):
            return None
        self._varying.add(id(node))
        try:
            return fold(node, known, opsets, expenses)
        except Refused:
            return None

    def note_computed(self, node: NodeProto) -> None:
        """Remember that a node is computed while building, for any static inputs."""
        self._computed[id(node)] = node

    def note(
        self,
        key: Hashable,
        node: NodeProto,
        values: Sequence[Value | None],
        context: ConversionContext,
        results: Sequence[Value | None],
    ) -> None:
        """Keep what a node came to, if it always comes to that."""
        own = self._builder._values
        known = {own[value] for value in values if isinstance(value, MLOperand)}
        known.update(result for operator in context.drawn for result in operator.results)
        read = {value for operator in context.drawn for value in operator.inputs if not isinstance(value, Constant)}
        read.update(own[result] for result in results if isinstance(result, MLOperand))
        if context.is_repeatable and read <= known:
            self._keep(key, node, values, DrawnAgain(context.drawn, [node_name(node)] * len(context.drawn), results))

    def note_run(
        self,
        key: Hashable,
        run: NodeRun,
        values: Sequence[Value | None],
        nodes: Sequence[DrawnAgain],
        results: Sequence[Value | None],
    ) -> DrawnAgain:
        """Keep and return what a run came to, each node of which was drawn again."""
        operators = [operator for node in nodes for operator in node.operators]
        names = [name for node in nodes for name in node.names]
        made = DrawnAgain(operators, names, results)
        self._keep(key, run, values, made)
        return made

    def _keep(
        self, key: Hashable, source: NodeProto | NodeRun, values: Sequence[Value | None], made: DrawnAgain
    ) -> None:
        operators = [(operator, operator.results) for operator in made.operators]
        self._drawn[key] = Drawn(source, list(values), operators, made.names, made.results)
