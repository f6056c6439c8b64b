"""Other names for values: those of an ``If``'s branch that takes the node's place must not be the graph's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import attrs
from onnx import GraphProto, NodeProto, TensorProto, helper

from webnn_py.onnx_models.problems import node_name
from webnn_py.onnx_models.reading.functions import inner_graphs


@attrs.frozen
class InlinedBranch:
    """What takes the place of an ``If``.

    Attributes:
        initializers: the branch's own.
        nodes: its nodes, then an Identity for each output of the ``If``.
    """

    initializers: list[TensorProto]
    nodes: list[NodeProto]


def inlined(node: NodeProto, branch: GraphProto, taken: set[str]) -> InlinedBranch:
    """Give what a branch defines names that are not taken yet, and take them."""
    own = [item.name for item in branch.initializer]
    own += [name for inner in branch.node for name in inner.output if name]
    new_names: dict[str, str] = {}
    for name in own:
        new_names[name] = free_name(name, node_name(node), taken)
        taken.add(new_names[name])
    initializers = []
    for item in branch.initializer:
        copy = TensorProto()
        copy.CopyFrom(item)
        copy.name = new_names[item.name]
        initializers.append(copy)
    nodes = [renamed(inner, new_names) for inner in branch.node]
    for item, outer in zip(branch.output, node.output, strict=True):
        if outer:
            nodes.append(helper.make_node("Identity", [new_names.get(item.name, item.name)], [outer]))
    return InlinedBranch(initializers, nodes)


def free_name(name: str, prefix: str, taken: set[str]) -> str:
    """The name itself, or one made of it that is not taken."""
    if name not in taken:
        return name
    return next(new for number in count() if (new := f"{prefix}/{name}{number or ''}") not in taken)


def renamed(node: NodeProto, new_names: Mapping[str, str]) -> NodeProto:
    """A copy of a node that uses and defines other names, in its inner graphs too."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [new_names.get(name, name) for name in node.input]
    copy.output[:] = [new_names.get(name, name) for name in node.output]
    for attribute in copy.attribute:
        for graph in inner_graphs(attribute):
            _rename_within(graph, new_names)
    return copy


def _rename_within(graph: GraphProto, new_names: Mapping[str, str]) -> None:
    """Rename what an inner graph takes from outside; ONNX lets no name of its own hide one of those."""
    for index, node in enumerate(graph.node):
        graph.node[index].CopyFrom(renamed(node, new_names))
    for item in graph.output:
        item.name = new_names.get(item.name, item.name)
