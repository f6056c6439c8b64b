"""Rename values: an ``If``'s branch that replaces the node must not have names of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from onnx import GraphProto, NodeProto, TensorProto, helper

from webnn_py.onnx_models.problems import node_name
from webnn_py.onnx_models.reading.functions import inner_graphs


def inlined(node: NodeProto, branch: GraphProto, taken: set[str]) -> tuple[list[TensorProto], list[NodeProto]]:
    """Return the initializers and nodes of a branch, which replace an ``If``, and an Identity for each of its outputs.

    What the branch defines gets names that are not taken yet, and takes them.
    """
    own = [item.name for item in branch.initializer]
    own += [name for inner in branch.node for name in inner.output if name]
    new_names: dict[str, str] = {}
    for name in own:
        new_names[name] = name
        if name in taken:
            others = (f"{node_name(node)}/{name}{number or ''}" for number in count())
            new_names[name] = next(other for other in others if other not in taken)
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
    return initializers, nodes


def renamed(node: NodeProto, new_names: Mapping[str, str]) -> NodeProto:
    """Return a copy of a node that uses and defines other names, in its inner graphs too."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [new_names.get(name, name) for name in node.input]
    copy.output[:] = [new_names.get(name, name) for name in node.output]
    for graph in inner_graphs(copy):  # ONNX lets no name of its own hide one that it takes from outside
        for index, inner in enumerate(graph.node):
            graph.node[index].CopyFrom(renamed(inner, new_names))
        for item in graph.output:
            item.name = new_names.get(item.name, item.name)
    return copy
