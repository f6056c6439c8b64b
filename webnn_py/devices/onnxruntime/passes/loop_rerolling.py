"""Re-roll unrolled loops: replace the repeated steps of a graph by one node that contains a single step.

Loops come as graphs of their steps from scripts that draw them. Thousands of nodes take long to write, optimize and
plan; one step takes as long as in a model that has the loop. Importers draw loops as one node, where they can.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Final

import attrs

from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.operators.matrix import gemm, matmul
from webnn_py.core.operators.movement import concat, slice_
from webnn_py.devices.composites.drawn_out import drawn_out
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE, DYNAMIC_QUANTIZE_LSTM
from webnn_py.devices.composites.loops import LOOP
from webnn_py.devices.onnxruntime.analyses.quantized_gates import quantized_gates
from webnn_py.devices.onnxruntime.claimed_operators import FEWEST_NODES, FEWEST_STEPS, PLAIN
from webnn_py.devices.onnxruntime.passes.loop_steps import NoLoopError, Place, RepeatedSteps, joined_by
from webnn_py.devices.onnxruntime.providers import CPU
from webnn_py.devices.rewriting.passes import PassContext, ReadConstant

QUANTIZING: Final = frozenset({DYNAMIC_QUANTIZE, DYNAMIC_QUANTIZE_LSTM})
"""Dynamic quantization, for which sigmoids before it are written in another way."""


def unroll_loops(graph: Graph, context: PassContext) -> Graph:
    """Return the graph with all steps of imported loops where other nodes quantize, and for untested providers."""
    operators = {node.operator for node in graph.nodes}
    if context.target == CPU.name and operators.isdisjoint(QUANTIZING):
        return graph
    return rewrite(graph, lambda node, current: drawn_out(node, current) if node.operator is LOOP else None)


def reroll_loops(graph: Graph, contents: ReadConstant) -> Graph:
    """Return the graph with its loops re-rolled; in each step, a state is multiplied by the same constant matrix.

    Args:
        graph: the graph to rewrite.
        contents: returns the values of constants.
    """
    while (rolled := _reroll_one_loop(graph, contents)) is not None:
        graph = rolled
    return graph


def _reroll_one_loop(graph: Graph, contents: ReadConstant) -> Graph | None:
    """Return the graph with one loop re-rolled; None where there is none."""
    matrices = _matrices(graph)
    ordered = sorted(graph.nodes, key=attrgetter("drawn")) if matrices else []
    rolled = (_rolled(graph, nodes, length, contents) for nodes, length in _runs(ordered, matrices))
    return next((found for found in rolled if found is not None), None)


def _matrices(graph: Graph) -> dict[Value, list[Node]]:
    """Return the products by each constant matrix that many of them share; none where a graph has quantized gates."""
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.operator is matmul or node.operator is gemm:
            readers[node.inputs[1]].append(node)
    many: dict[Value, list[Node]] = {
        matrix: nodes
        for matrix, nodes in readers.items()
        if len(nodes) >= FEWEST_STEPS and isinstance(matrix, Constant)
    }
    return {} if many and quantized_gates(graph) else many


def _runs(ordered: Sequence[Node], matrices: Mapping[Value, list[Node]]) -> Iterator[tuple[Sequence[Node], int]]:
    """Yield runs of nodes that repeat at a distance, around the products by a matrix, each with its distance."""
    places = {node: place for place, node in enumerate(ordered)}
    for nodes in reversed([*matrices.values()]):  # earlier loops do not read what a later one replaces
        at = sorted([places[node] for node in nodes])
        distances = [after - before for before, after in pairwise(at)]
        ((length, times),) = Counter(distances).most_common(1)
        if times + 1 < FEWEST_STEPS or (len(nodes) + 1) * length < FEWEST_NODES:
            continue
        first = behind = at[distances.index(length)]
        while first and _is_repeated(ordered[first - 1], ordered[first - 1 + length]):
            first -= 1
        while behind + length < len(ordered) and _is_repeated(ordered[behind], ordered[behind + length]):
            behind += 1
        count = (behind + length - first) // length
        run = ordered[first : first + count * length]
        is_plain = all(node.operator.name in PLAIN for node in run[:length])
        if count >= FEWEST_STEPS and len(run) >= FEWEST_NODES and is_plain:
            yield run, length


def _is_repeated(node: Node, other: Node) -> bool:
    return (
        node.operator is other.operator
        and len(node.inputs) == len(other.inputs)
        and (
            node.options == other.options
            or (node.operator is slice_ and {**node.options, "starts": ()} == {**other.options, "starts": ()})
        )
        and node.outputs == other.outputs
        and node.operands.keys() == other.operands.keys()
    )


def _rolled(graph: Graph, nodes: Sequence[Node], length: int, contents: ReadConstant) -> Graph | None:
    """Return the graph with one node in place of all steps; None where they are no loop."""
    try:
        steps = RepeatedSteps(nodes, length, contents)
    except NoLoopError:
        return None
    others = [node for node in graph.nodes if node not in steps.places]
    stacks = {node.results[0]: stack for node in others if (stack := _stack(node, steps)) is not None}
    made = steps.as_one([*stacks.values()])
    if made is None:
        return None
    states, stacked = made
    builder = RewriteBuilder()
    replaced = {steps.of_step(place, steps.count - 1): value for place, value in states.items()}
    for whole, value in zip(stacks, stacked, strict=True):
        replaced[whole] = builder.value(builder.reshape(builder.operand(value), [*whole.descriptor.shape]))
    rest = attrs.evolve(graph, nodes=(nodes[0], *others))
    without = rewrite(rest, lambda node, _: replaced if node is nodes[0] else None)
    # If other nodes read further values of the steps, the steps are still in the graph.
    return without if steps.places.keys().isdisjoint(without.nodes) else None


def _stack(node: Node, steps: RepeatedSteps) -> tuple[Place, bool] | None:
    """Return the place of the values that a node concatenates over all steps, and whether it does so in reverse."""
    if node.operator is not concat or len(node.inputs) != steps.count:
        return None
    values = [*joined_by(node)]
    if not values:
        return None
    for is_backward in (False, True):
        place = steps.place_of(values[-1 if is_backward else 0])
        ordered = values[::-1] if is_backward else values
        if place is not None and all(value is steps.of_step(place, step) for step, value in enumerate(ordered)):
            return place, is_backward
    return None
