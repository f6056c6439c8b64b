"""Drafts of a model that is run, with no more nodes than they need."""

from collections.abc import Collection, Sequence

from webnn_py.onnx_export.nodes import Draft


def tidied(nodes: Sequence[Draft], outputs: Collection[str]) -> list[Draft]:
    """The nodes without Identity, without what is computed already, and of a Reshape of a Reshape the last alone.

    Engines find these as well, but infer all shapes anew for each kind that they find.

    Args:
        nodes: in an order in which they can run.
        outputs: the names of the model's outputs, which nodes of their own make; so is what graphs within nodes read.
    """
    found: list[Draft] = []
    same: dict[str, str] = {}
    made: dict[object, list[Draft]] = {}
    before: dict[str, str] = {}
    named = frozenset(outputs).union(*[node.within.reads for node in nodes if node.within is not None])
    for drawn in nodes:
        node = drawn
        if same and not same.keys().isdisjoint(node.inputs):
            node = node.reading([*map(same.get, node.inputs, node.inputs)])
        is_apart = not named.isdisjoint(node.outputs)
        if node.operator == "Identity" and not is_apart:
            same[node.outputs[0]] = node.inputs[0]
            continue
        if node.operator == "Reshape":
            if node.inputs[0] in before:
                node = node.reading([before[node.inputs[0]], node.inputs[1]])
            before[node.outputs[0]] = node.inputs[0]
        alike = made.setdefault((node.operator, node.attributes, *node.inputs), [])
        twin = next((other for other in alike if other.computes_as(node)), None) if alike and not is_apart else None
        if twin is not None:
            same.update(zip(node.outputs, twin.outputs, strict=True))
            continue
        alike.append(node)
        found.append(node)
    return found
