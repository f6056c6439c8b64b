"""Convolutions with the Relu behind them as one node, as which onnxruntime runs the two: it has less to optimize."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain

from webnn_py.onnx_export.drafts import MICROSOFT, Draft


def activated(nodes: Sequence[Draft], outputs: Collection[str]) -> list[Draft]:
    """The nodes with each Relu in the convolution that nothing else reads; for the processor's provider only.

    Args:
        nodes: in an order in which they can run.
        outputs: the names of the model's outputs.
    """
    reads = Counter(chain.from_iterable([node.inputs for node in nodes]))
    reads.update(outputs)
    found: list[Draft] = []
    places: dict[str, int] = {}
    for node in nodes:
        place = places.get(node.inputs[0]) if node.operator == "Relu" else None
        if place is not None:
            found[place] = _fused(found[place], node)
            continue
        if node.operator == "Conv" and reads[node.outputs[0]] == 1:
            places[node.outputs[0]] = len(found)
        found.append(node)
    return found


def _fused(convolution: Draft, relu: Draft) -> Draft:
    attributes = (*convolution.attributes, ("activation", "Relu"))
    return Draft("FusedConv", convolution.inputs, relu.outputs, attributes, convolution.name, MICROSOFT)
