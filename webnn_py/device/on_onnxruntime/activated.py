"""Convolutions and products with the activation behind them as one node, as which onnxruntime runs the two.

So it has less to optimize: where it finds them itself, it infers all shapes anew.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

from webnn_py.onnx_export.drafts import MICROSOFT, Draft

FUSED: Final[Mapping[str, str]] = {"Conv": "FusedConv", "Gemm": "FusedGemm"}
"""What operators are called with an activation behind them."""

ACTIVATIONS: Final = frozenset({"LeakyRelu", "Relu"})


def activated(nodes: Sequence[Draft], outputs: Collection[str]) -> list[Draft]:
    """The nodes with each activation in what nothing else reads; for the processor's provider only.

    Args:
        nodes: in an order in which they can run.
        outputs: the names of the model's outputs.
    """
    reads = Counter(chain.from_iterable([node.inputs for node in nodes]))
    reads.update(outputs)
    found: list[Draft] = []
    places: dict[str, int] = {}
    transposed: set[str] = set()
    for node in nodes:
        place = places.get(node.inputs[0]) if node.operator in ACTIVATIONS else None
        if place is not None:
            found[place] = _fused(found[place], node)
            continue
        if node.operator == "Transpose":
            transposed.add(node.outputs[0])
        elif node.operator in FUSED and reads[node.outputs[0]] == 1 and _is_fused(node, transposed):
            places[node.outputs[0]] = len(found)
        found.append(node)
    return found


def _is_fused(node: Draft, transposed: Collection[str]) -> bool:
    """Whether it may be: what is transposed before Gemm onnxruntime puts into it, but not into FusedGemm."""
    return node.operator != "Gemm" or not any(name in transposed for name in node.inputs)


def _fused(node: Draft, activation: Draft) -> Draft:
    operator = FUSED[node.operator]
    attributes = (*node.attributes, ("activation", activation.operator))
    for name, value in activation.attributes:  # the slope of LeakyRelu
        attributes += (("activation_params", (value,)) if node.operator == "Conv" else (f"activation_{name}", value),)
    return Draft(operator, node.inputs, activation.outputs, attributes, node.name, MICROSOFT)
