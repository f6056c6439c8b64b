"""Passes over the ONNX nodes of a model that is run, which need fewer of them than rules write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import attrs
from numpy.typing import NDArray

from webnn_py.devices.rewriting.passes import GraphPass, PassContext
from webnn_py.devices.rewriting.report import AppliedRule
from webnn_py.onnx_export.nodes import OnnxNode


@attrs.frozen(eq=False)
class WrittenNodes:
    """The ONNX nodes of a model before it is assembled.

    Attributes:
        nodes: the nodes, in an order in which they can run.
        outputs: the names of the model's outputs; nodes of their own compute these.
        constants: the constants by name, to which passes may add.
    """

    nodes: Sequence[OnnxNode]
    outputs: Collection[str]
    constants: dict[str, NDArray[Any]]


def merge_equal_nodes(written: WrittenNodes, context: PassContext) -> WrittenNodes:
    """Remove Identity nodes and nodes that compute what another one has, and let a Reshape of a Reshape read its input.

    onnxruntime would find these as well, but infers all shapes again for each kind that it finds. A name that the model
    or a graph within a node reads keeps its node.
    """
    found: list[OnnxNode] = []
    same: dict[str, str] = {}
    made: dict[object, list[OnnxNode]] = {}
    before: dict[str, str] = {}
    named = frozenset(written.outputs).union(*[node.within.reads for node in written.nodes if node.within is not None])
    for drawn in written.nodes:
        node = drawn
        if same and not same.keys().isdisjoint(node.inputs):
            node = node.reading([*map(same.get, node.inputs, node.inputs)])
        is_apart = not named.isdisjoint(node.outputs)
        if node.operator == "Identity" and not is_apart:
            same[node.outputs[0]] = node.inputs[0]
            context.applied.append(AppliedRule("identity", node.place))
            continue
        if node.operator == "Reshape":
            if node.inputs[0] in before:
                node = node.reading([before[node.inputs[0]], node.inputs[1]])
                context.applied.append(AppliedRule("reshape of a reshape", node.place))
            before[node.outputs[0]] = node.inputs[0]
        alike = made.setdefault((node.operator, node.attributes, *node.inputs), [])
        twin = next((other for other in alike if other.computes_as(node)), None) if alike and not is_apart else None
        if twin is not None:
            same.update(zip(node.outputs, twin.outputs, strict=True))
            context.applied.append(AppliedRule("equal node", node.place))
            continue
        alike.append(node)
        found.append(node)
    return attrs.evolve(written, nodes=found) if context.applied else written


def remove_unused_nodes(written: WrittenNodes, _context: PassContext) -> WrittenNodes:
    """Remove the nodes that no output of the model needs."""
    nodes, _ = needed(written.nodes, written.outputs)
    return written if len(nodes) == len(written.nodes) else attrs.evolve(written, nodes=nodes)


def needed(nodes: Sequence[OnnxNode], outputs: Iterable[str]) -> tuple[list[OnnxNode], set[str]]:
    """Return the nodes that outputs need, and all names that these and the outputs use."""
    used = set(outputs)
    found: list[OnnxNode] = []
    for node in reversed(nodes):
        if not used.isdisjoint(node.outputs):
            used.update(node.read)
            found.append(node)
    return found[::-1], used


EQUAL_NODES: Final = GraphPass(name="equal-nodes", run=merge_equal_nodes)
UNUSED_NODES: Final = GraphPass(name="unused-nodes", run=remove_unused_nodes, after=("equal-nodes",))
