"""Convolutions and products with the bias and the activation behind them as one node, as which onnxruntime runs them.

So it has less to optimize: where it finds them itself, it infers all shapes anew.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

from webnn_py.onnx_export.body import Array
from webnn_py.onnx_export.drafts import MICROSOFT, Draft

FUSED: Final[Mapping[str, str]] = {"Conv": "FusedConv", "Gemm": "FusedGemm"}
"""What operators are called with an activation behind them."""

ACTIVATIONS: Final = frozenset({"LeakyRelu", "Relu"})

WITHOUT_BIAS: Final = 2
"""Inputs of a convolution that has none."""


def fuse_activations(nodes: Sequence[Draft], outputs: Collection[str], constants: dict[str, Array]) -> list[Draft]:
    """Return the nodes with each bias and activation in the convolution or product before it, which nothing else reads.

    The CPU provider alone has such operators.

    Args:
        nodes: in an order in which they can run.
        outputs: the names of the model's outputs.
        constants: those of the model, by name, to which biases are added.
    """
    reads = Counter(chain.from_iterable([node.read for node in nodes]))
    reads.update(outputs)
    found: list[Draft] = []
    places: dict[str, int] = {}
    transposed: set[str] = set()
    for node in nodes:
        place = _place_before(node, places)
        one = None if place is None else _as_one(found[place], node, constants)
        if one is None or place is None:
            place, one = len(found), node
            found.append(node)
        found[place] = one
        if one.operator == "Transpose":
            transposed.add(one.outputs[0])
        elif one.operator in FUSED and reads[one.outputs[0]] == 1 and _is_fused(one, transposed):
            places[one.outputs[0]] = place
    return found


def _place_before(node: Draft, places: Mapping[str, int]) -> int | None:
    """The place of the convolution or product that a bias or an activation is behind of."""
    if node.operator in ACTIVATIONS:
        return places.get(node.inputs[0])
    if node.operator == "Add":
        return places.get(node.inputs[0], places.get(node.inputs[1]))
    return None


def _is_fused(node: Draft, transposed: Collection[str]) -> bool:
    """Whether it may be: what is transposed before Gemm onnxruntime puts into it, but not into FusedGemm."""
    return node.operator != "Gemm" or not any(name in transposed for name in node.inputs)


def _as_one(before: Draft, node: Draft, constants: dict[str, Array]) -> Draft | None:
    return _biased(before, node, constants) if node.operator == "Add" else _fused(before, node)


def _biased(convolution: Draft, add: Draft, constants: dict[str, Array]) -> Draft | None:
    """A convolution with the number of each filter that is added to it, if it is that."""
    if convolution.operator != "Conv" or len(convolution.inputs) != WITHOUT_BIAS:
        return None
    name = add.inputs[1] if add.inputs[0] == convolution.outputs[0] else add.inputs[0]
    bias, filters = constants.get(name), constants.get(convolution.inputs[1])
    if bias is None or filters is None or bias.shape != (1, filters.shape[0], *(1,) * (filters.ndim - 2)):
        return None
    of_filters = f"{name}/filters"
    constants[of_filters] = bias.reshape(-1)
    inputs = [*convolution.inputs, of_filters]
    return Draft("Conv", inputs, add.outputs, convolution.attributes, convolution.name)


def _fused(node: Draft, activation: Draft) -> Draft:
    operator = FUSED[node.operator]
    attributes = (*node.attributes, ("activation", activation.operator))
    for name, value in activation.attributes:  # the slope of LeakyRelu
        attributes += (("activation_params", (value,)) if node.operator == "Conv" else (f"activation_{name}", value),)
    return Draft(operator, node.inputs, activation.outputs, attributes, node.name, MICROSOFT)
