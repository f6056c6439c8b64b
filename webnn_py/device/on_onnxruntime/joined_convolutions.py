"""Convolutions of few filters each that read one image as one: what detects things has several for each size of them.

onnxruntime goes over an image once for each convolution, and computes as many filters as fill a block of channels. What
the convolutions go on with alike, as a depthwise convolution or a transpose, is one as well: the pieces come last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.backend import HostArray
from webnn_py.device.reshapes import places
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import convolution, movement
from webnn_py.rewriting import rewrite

MOST_FILTERS: Final = 32
"""Of all that are joined: so many are computed in one walk over the image."""

MOST_IN_THE_MEAN: Final = 12
"""Filters of one of them: of more, one convolution takes as long as several."""

FEWEST_CHANNELS: Final = 32
"""Of the image: of fewer, to cut the result takes longer than the walks over the image that are saved."""

ALIGNED: Final = 4
"""What the channels of a depthwise convolution are a multiple of, if they are laid out in blocks."""

KEEP_APART: Final = frozenset(
    {
        "add",
        "average_pool2d",
        "batch_normalization",
        "conv2d",
        "conv_transpose2d",
        "l2_pool2d",
        "max_pool2d",
        "resample2d",
    }
)
"""Readers that become part of a convolution, but not of a piece, or read blocks of channels, which pieces are not."""

OWN: Final = frozenset({"groups", "new_shape"})
"""The options in which nodes may differ that are joined."""

CHANNELS: Final = 1
"""The axis of an image."""


def joined_convolutions(graph: Graph) -> Graph:
    """The graph with one convolution for several of few filters that differ in those alone."""
    convolutions = [node for node in graph.nodes if node.operator is convolution.conv2d]
    if len({node.inputs[0] for node in convolutions}) == len(convolutions):
        return graph
    by_image: dict[Value, list[Node]] = defaultdict(list)
    for node in convolutions:
        by_image[node.inputs[0]].append(node)
    groups = [group for nodes in by_image.values() if len(nodes) > 1 for group in _alike(nodes)]
    groups = [group for group in groups if len(group) > 1 and _filters(group) <= MOST_IN_THE_MEAN * len(group)]
    if not groups:
        return graph
    branches = _Branches(graph)
    joined = {group[0]: steps for group in groups if (steps := branches.steps(group)) is not None}
    if not joined:
        return graph

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        steps = joined.get(node)
        return None if steps is None else _pieces(steps, current.inputs[0])

    return rewrite(graph, replace)


def _alike(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """Those of some convolutions of one image that can be one."""
    if nodes[0].inputs[0].descriptor.shape[CHANNELS] < FEWEST_CHANNELS:
        return
    groups: dict[object, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.options["groups"] != 1 or _filters([node]) > MOST_FILTERS or not _is_plain(node):
            continue
        kind = _kind(node)
        if _filters([*groups[kind], node]) > MOST_FILTERS:
            yield groups.pop(kind)
        groups[kind].append(node)
    yield from groups.values()


def _is_plain(node: Node) -> bool:
    """Whether a convolution is of float32, laid out as ONNX has it, and of constants that are there."""
    options = node.options
    return (
        (options["input_layout"], options["filter_layout"]) == ("nchw", "oihw")
        and node.outputs[0].data_type == "float32"
        and all(isinstance(value, Constant) and isinstance(value.data, np.ndarray) for value in node.inputs[1:])
    )


def _filters(nodes: Sequence[Node]) -> int:
    return sum(node.outputs[0].shape[CHANNELS] for node in nodes)


def _kind(node: Node) -> object:
    """What nodes have in common that can be one: the operator, its options, and of convolutions the window."""
    window = node.inputs[1].descriptor.shape[1:] if node.operator is convolution.conv2d else ()
    options = [str(option) for name, option in node.options.items() if name not in OWN]
    return (node.operator.name, *node.operands, window, *options)


@attrs.frozen
class _Stage:
    """Nodes that are computed as one.

    Attributes:
        nodes: one of each branch.
        axis: along which what they give is joined.
    """

    nodes: Sequence[Node]
    axis: int


class _Branches:
    """What convolutions of a graph go on with."""

    def __init__(self, graph: Graph) -> None:
        self._outputs = set(graph.outputs.values())
        self._readers: dict[Value, list[Node]] = defaultdict(list)
        for node in graph.nodes:
            for value in node.inputs:
                if isinstance(value, Output):
                    self._readers[value].append(node)

    def steps(self, group: Sequence[Node]) -> list[_Stage] | None:
        """The convolutions, and what follows each of them alike; None where what reads that keeps them apart."""
        steps = [_Stage(group, CHANNELS)]
        while (step := self._behind(steps[-1])) is not None:
            steps.append(step)
        readers = (reader for node in steps[-1].nodes for reader in self._readers[node.results[0]])
        return None if any(reader.operator.name in KEEP_APART for reader in readers) else steps

    def _behind(self, step: _Stage) -> _Stage | None:
        values = [node.results[0] for node in step.nodes]
        if any(value in self._outputs or len(self._readers[value]) != 1 for value in values):
            return None
        nodes = [self._readers[value][0] for value in values]
        find_axis = AXES.get(nodes[0].operator.name)
        if find_axis is None or len(set(map(_kind, nodes))) > 1:
            return None
        axis = find_axis(nodes, step.axis)
        return None if axis is None else _Stage(nodes, axis)


def _axis_of_depthwise(nodes: Sequence[Node], axis: int) -> int | None:
    """That of the channels, if each of them is convolved alone, and not in blocks unless all are."""
    counts = [node.options["groups"] for node in nodes]
    is_aligned = sum(counts) % ALIGNED == 0 or all(count % ALIGNED for count in counts)
    is_channels = axis == CHANNELS and all(_is_plain(node) and _is_depthwise(node) for node in nodes)
    return axis if is_channels and is_aligned else None


def _is_depthwise(node: Node) -> bool:
    """Whether a convolution makes each channel of the one in its place."""
    groups: int = node.options["groups"]
    return groups == node.outputs[0].shape[CHANNELS] == node.operand("input").shape[CHANNELS]


def _axis_of_transpose(nodes: Sequence[Node], axis: int) -> int | None:
    order = nodes[0].options["permutation"] or range(nodes[0].outputs[0].rank)[::-1]
    return [*order].index(axis)


def _axis_of_reshape(nodes: Sequence[Node], axis: int) -> int | None:
    """One as long as the axis, with as many elements before it, where the others are alike."""
    found = set.intersection(*(places(node.operand("input").shape, node.outputs[0].shape, axis) for node in nodes))
    for place in found:
        if len({(*node.outputs[0].shape[:place], -1, *node.outputs[0].shape[place + 1 :]) for node in nodes}) == 1:
            return place
    return None


AXES: Final[Mapping[str, Callable[[Sequence[Node], int], int | None]]] = {
    "conv2d": _axis_of_depthwise,
    "relu": lambda _nodes, axis: axis,
    "reshape": _axis_of_reshape,
    "transpose": _axis_of_transpose,
}
"""(nodes, the axis along which what they read is joined) → that of what they give, by operator; None if they cannot be
one."""


def _pieces(steps: Sequence[_Stage], value: Value) -> Mapping[Value, Value]:
    """What each branch of an image gives, cut out of all that is computed as one."""
    for step in steps:
        value = _as_one(step, value)
    ends, axis = steps[-1].nodes, steps[-1].axis
    options = {"splits": tuple(node.outputs[0].shape[axis] for node in ends), "axis": axis}
    outputs = tuple(node.outputs[0] for node in ends)
    split = Node(movement.split, {"input": value}, options, outputs, ends[0].label, _drawn(ends))
    return dict(zip([node.results[0] for node in ends], split.results, strict=True))


def _as_one(step: _Stage, value: Value) -> Value:
    """What one node gives in the place of several."""
    first, axis = step.nodes[0], step.axis
    size = sum(node.outputs[0].shape[axis] for node in step.nodes)
    shape = (*first.outputs[0].shape[:axis], size, *first.outputs[0].shape[axis + 1 :])
    own: dict[str, object] = {"new_shape": shape}
    if first.operator is convolution.conv2d:
        own["groups"] = size if _is_depthwise(first) else 1
    options = {name: own.get(name, option) for name, option in first.options.items()}
    operands = {
        name: _end_to_end([node.operands[name] for node in step.nodes]) for name in first.operands if name != "input"
    }
    output = MLOperandDescriptor(first.outputs[0].data_type, shape)
    return Node(
        first.operator, {"input": value, **operands}, options, (output,), first.label, _drawn(step.nodes)
    ).results[0]


def _end_to_end(constants: Sequence[object]) -> Constant:
    """Constants as one, along their first axis."""
    keys: list[Hashable] = []
    arrays: list[HostArray] = []
    for constant in constants:
        assert isinstance(constant, Constant)  # noqa: S101 - for type checkers
        assert isinstance(constant.data, np.ndarray)  # noqa: S101 - for type checkers
        if constant.key is not None:
            keys.append(constant.key)
        arrays.append(constant.data)
    data = np.concatenate(arrays)
    key = tuple(keys) if len(keys) == len(arrays) else None
    return Constant(MLOperandDescriptor("float32", data.shape), data, key)


def _drawn(nodes: Sequence[Node]) -> tuple[int, ...]:
    return tuple([place for node in nodes for place in node.drawn])
