"""Upper bounds on the cost of folding a node, from its inputs' shapes and values, before it is computed.

Only operators that stand here are computed while building. Each is loops of numpy over its inputs and outputs, or
counts the elements that it goes through one by one. Others could take any time (Loop), open what they are given
(ImageDecoder), or give something else each time (RandomNormal).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from onnx import helper

from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.reading.element_types import is_of_numpy, type_name
from webnn_py.onnx_models.rule_helpers.axes import counted, integer, integers, scalar, whole
from webnn_py.onnx_models.rules.einsum import parsed


@attrs.frozen
class FoldingCost:
    """An upper bound on the cost of computing a node.

    Attributes:
        bytes: of its outputs, and of what is larger on the way.
        steps: elements that are computed one by one.
    """

    bytes: int
    steps: int = 0


@attrs.frozen
class FoldedNode:
    """A node with values.

    Attributes:
        inputs: its inputs; None for absent ones.
        attributes: its attributes by name.
        outputs: how many outputs it has.
    """

    inputs: Sequence[StaticValue | None]
    attributes: Mapping[str, Any]
    outputs: int

    def input(self, index: int, name: str) -> StaticValue:
        """Return an input that the operator needs."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Refused(f"input {name} is missing; it is needed")
        return value

    def integers(self, name: str, index: int) -> tuple[int, ...]:
        """Return integers that are an attribute in some versions of the operator, in others an input."""
        if name in self.attributes:
            return tuple(map(int, self.attributes[name]))
        return integers(f"input {name}", self.input(index, name))

    @property
    def present(self) -> list[StaticValue]:
        """The inputs that are not absent."""
        return [value for value in self.inputs if value is not None]

    @property
    def width(self) -> int:
        """Of an element of the widest input, in bytes."""
        return max((value.itemsize for value in self.present), default=8)


Estimate = Callable[[FoldedNode], FoldingCost]
INDEX: Final = 8
"""The bytes of an index."""


def _broadcast(node: FoldedNode) -> FoldingCost:
    """Return the cost of one element for each of the inputs' common shape."""
    return FoldingCost(math.prod(np.broadcast_shapes(*(value.shape for value in node.present))) * node.width)


def _one_by_one(node: FoldedNode) -> FoldingCost:
    return FoldingCost(_broadcast(node).bytes, sum(value.size for value in node.present))


def _largest_input(node: FoldedNode) -> FoldingCost:
    return FoldingCost(max(value.size for value in node.present) * max(node.width, 4))


def _all_inputs(node: FoldedNode) -> FoldingCost:
    return FoldingCost(sum(value.size for value in node.present) * node.width)


def _view(node: FoldedNode) -> FoldingCost:
    """Return the length of a shape; all other results share the input's memory."""
    return FoldingCost(INDEX * max(1, *(value.ndim for value in node.present)))


def _split(node: FoldedNode) -> FoldingCost:
    if node.attributes.get("num_outputs", node.outputs) != node.outputs:
        refuse("attribute num_outputs", node.attributes["num_outputs"], f"{node.outputs}, as many as the outputs")
    return FoldingCost(0)


def _indices(node: FoldedNode) -> FoldingCost:
    """Outputs of elements and their indices, sorted or not."""
    data = node.input(0, "X")
    return FoldingCost(data.size * (data.itemsize + INDEX * (data.ndim + 3)), data.size)


def _top_k(node: FoldedNode) -> FoldingCost:
    data, k = node.input(0, "X"), node.attributes.get("k")
    k = integer("input K", node.input(1, "K")) if k is None else k
    size = data.shape[counted(node.attributes.get("axis", -1), data.ndim)]
    if not 0 <= k <= size:
        refuse("k", k, f"from 0 to {size}, the length of the axis")
    return _indices(node)


def _cast(node: FoldedNode) -> FoldingCost:
    to = node.attributes.get("to", 0)
    if not is_of_numpy(to):
        refuse("attribute to", type_name(to), "a type of numbers")
    return FoldingCost(node.input(0, "input").size * int(helper.tensor_dtype_to_np_dtype(to).itemsize))


def _constant_of_shape(node: FoldedNode) -> FoldingCost:
    shape = integers("input input", node.input(0, "input"))
    if min(shape, default=0) < 0:
        refuse("input input", shape, "at least 0 everywhere")
    return FoldingCost(math.prod(shape) * INDEX)


def _expand(node: FoldedNode) -> FoldingCost:
    data, shape = node.input(0, "input"), integers("input shape", node.input(1, "shape"))
    return FoldingCost(math.prod(np.broadcast_shapes(data.shape, shape)) * data.itemsize)


def _tile(node: FoldedNode) -> FoldingCost:
    data, repeats = node.input(0, "input"), integers("input repeats", node.input(1, "repeats"))
    if min(repeats, default=0) < 0:
        refuse("input repeats", repeats, "at least 0 everywhere")
    return FoldingCost(data.size * math.prod(repeats) * data.itemsize)


def _range(node: FoldedNode) -> FoldingCost:
    names = ("start", "limit", "delta")
    start, limit, delta = (scalar(f"input {name}", node.input(index, name)) for index, name in enumerate(names))
    if delta == 0 or not all(map(math.isfinite, (start, limit, delta))):
        refuse("inputs start, limit and delta", (start, limit, delta), "finite, and delta not 0")
    # Of a quotient that is no float64 any more, the size is out of any limit.
    count = min(max((limit - start) / delta, 0.0), 1e18) if isinstance(delta, float) else (limit - start) // delta
    return FoldingCost((max(0, int(count)) + 1) * INDEX)


def _pad(node: FoldedNode) -> FoldingCost:
    data = node.input(0, "data")
    pads = node.integers("paddings" if "paddings" in node.attributes else "pads", 1)
    chosen = node.inputs[3] if len(node.inputs) > 3 else None
    axes = range(data.ndim) if chosen is None else integers("input axes", chosen)
    sizes = list(data.shape)
    if len(pads) != 2 * len(axes):
        refuse("pads", pads, f"two for each of {len(axes)} axes")
    for axis, begin, end in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        sizes[counted(axis, data.ndim)] += max(0, begin) + max(0, end)
    # Reflected again and again, the shorter the input is, the more often.
    rounds = sum(4 * size // max(1, old) for size, old in zip(sizes, data.shape, strict=True))
    return FoldingCost(math.prod(sizes) * data.itemsize, rounds)


def _one_hot(node: FoldedNode) -> FoldingCost:
    indices, values = node.input(0, "indices"), node.input(2, "values")
    depth = whole("input depth", node.input(1, "depth"))
    return FoldingCost(indices.size * max(0, depth) * max(INDEX, values.itemsize) + max(0, depth) * INDEX)


def _eye_like(node: FoldedNode) -> FoldingCost:
    data = node.input(0, "input")
    return FoldingCost(data.size * (data.size if data.ndim == 1 else 1) * INDEX)


def _gather(node: FoldedNode) -> FoldingCost:
    data, indices = node.input(0, "data"), node.input(1, "indices")
    axis = counted(node.attributes.get("axis", 0), data.ndim)
    slices = math.prod(data.shape[:axis]) * math.prod(data.shape[axis + 1 :])
    copied = 0 if data.flags.c_contiguous else data.nbytes
    return FoldingCost(indices.size * slices * data.itemsize + copied)


def _gather_elements(node: FoldedNode) -> FoldingCost:
    """Numpy takes as many rounds to wrap an index as it is lengths beyond the axis: none may be."""
    data, indices = node.input(0, "data"), node.input(1, "indices")
    size = data.shape[counted(node.attributes.get("axis", 0), data.ndim)]
    if indices.dtype.kind not in "iu":
        refuse("the data type of input indices", indices.dtype.name, "a type of integers")
    if indices.size and not -size <= indices.min() <= indices.max() < size:
        refuse("input indices", f"from {indices.min()} to {indices.max()}", f"from {-size} to {size - 1}")
    return FoldingCost(indices.size * data.itemsize, indices.size)


def _gather_nd(node: FoldedNode) -> FoldingCost:
    data, indices = node.input(0, "data"), node.input(1, "indices")
    depth = indices.shape[-1] if indices.ndim else 0
    places = indices.size // max(1, depth)
    rest = math.prod(data.shape[node.attributes.get("batch_dims", 0) + depth :])
    return FoldingCost(places * rest * data.itemsize, places)


def _scatter(node: FoldedNode) -> FoldingCost:
    return FoldingCost(node.input(0, "data").nbytes, node.input(1, "indices").size)


def _window(node: FoldedNode) -> FoldingCost:
    return FoldingCost(max(0, whole("input size", node.input(0, "size"))) * INDEX)


def _mel_weights(node: FoldedNode) -> FoldingCost:
    """Return the cost, where at most two elements of each row are computed one by one for each column."""
    names = enumerate(("num_mel_bins", "dft_length"))
    bins, length = (max(0, whole(f"input {name}", node.input(index, name))) for index, name in names)
    count = bins * (length // 2 + 1)
    return FoldingCost(count * INDEX, 2 * count)


def _einsum(node: FoldedNode) -> FoldingCost:
    """No product on the way has more elements than all labels together have values."""
    terms, _ = parsed(str(node.attributes.get("equation", b""), "utf-8"), [value.ndim for value in node.present])
    sizes: dict[str, int] = {}
    for labels, value in zip(terms, node.present, strict=True):
        for label, size in zip(labels, value.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return FoldingCost(math.prod(sizes.values()) * max(node.width, 4))


_ESTIMATES: Final[Mapping[Estimate, str]] = {
    _broadcast: (
        "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Cos "
        "Cosh Div Equal Exp Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Log Max Mean Min Mod Mul Neg "
        "Not Or Pow Reciprocal Round Shrink Sign Sin Sinh Sqrt Sub Sum Tan Where Xor"
    ),
    _one_by_one: "Erf",
    _largest_input: (
        "CastLike CumProd CumSum DequantizeLinear DynamicQuantizeLinear Hardmax QuantizeLinear ReduceL1 ReduceL2 "
        "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Trilu"
    ),
    _all_inputs: "Concat Compress DepthToSpace ReverseSequence SpaceToDepth",
    _view: "Dropout Flatten Identity Reshape Shape Size Slice Squeeze Transpose Unsqueeze",
    _indices: "ArgMax ArgMin NonZero Unique",
    _top_k: "TopK",
    _scatter: "ScatterElements ScatterND",
    _window: "BlackmanWindow HammingWindow HannWindow",
    _mel_weights: "MelWeightMatrix",
    _split: "Split",
    _cast: "Cast",
    _constant_of_shape: "ConstantOfShape",
    _expand: "Expand",
    _tile: "Tile",
    _range: "Range",
    _pad: "Pad",
    _one_hot: "OneHot",
    _eye_like: "EyeLike",
    _gather: "Gather",
    _gather_elements: "GatherElements",
    _gather_nd: "GatherND",
    _einsum: "Einsum",
}

COSTS: Final[Mapping[str, Estimate]] = {
    operator: estimate for estimate, operators in _ESTIMATES.items() for operator in operators.split()
}
"""By operator, for all of its versions."""
