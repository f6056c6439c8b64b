"""Max pooling as early as may be: in the tiles of a depthwise convolution, and before a relu, which gets less so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy.passes.matching import UnlikeError, check, single
from webnn_py.device.on_numpy.routines.channel_runs import has_channel_runs
from webnn_py.device.on_numpy.routines.conv_sizes import Convolution
from webnn_py.device.on_numpy.routines.depthwise import PAIR, has_overlapping_rows, pooled_rows
from webnn_py.device.on_numpy.routines.low_images import has_low_images
from webnn_py.device.on_numpy.scratch import allowance
from webnn_py.device.on_numpy.table import Kernel, constant_array, kernel
from webnn_py.graph import Constant, Node, Output, Value
from webnn_py.operators.convolution import conv2d
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.windows import Slide, image_shape, slides


def pooled_convolution(
    input: MLOperand, filter: MLOperand, bias: MLOperand | None = None, *, convolved: MLOperandDescriptor
) -> MLOperandDescriptor:
    """The greatest of each two by two results of a convolution; the other options are those of ``conv2d``.

    Args:
        input: float32 images, nchw.
        filter: as for ``conv2d``.
        bias: finite.
        convolved: what ``conv2d`` itself would give.
    """
    del input, filter, bias
    batch, channels, height, width = convolved.shape
    return MLOperandDescriptor("float32", (batch, channels, height // PAIR, width // PAIR))


POOLED_CONVOLUTION: Final = Operator(pooled_convolution, "conv2d", {})


def _convolution(node: Node) -> Convolution:
    whole = Convolution.of(Node(conv2d, node.operands, node.options, (node.options["convolved"],)))
    return attrs.evolve(whole, allowance=allowance(node))


def _work(node: Node) -> float:
    return _convolution(node).multiply_adds


@kernel(POOLED_CONVOLUTION, work=_work)
def make_pooled_convolution(node: Node) -> Kernel:
    """The kernel; see the operator."""
    return pooled_rows(_convolution(node))


def pooled_early(node: Node, pool: Node, uses: Mapping[Value, int]) -> Node:
    """The node that gives what a max pooling does: relu of the pooled images, or the convolution and pooling in one.

    Of zeros alone the sign may be another one.

    Args:
        node: the pooling in the graph.
        pool: the same with operands that have taken the place of its own.
        uses: how often each value of the graph is read.

    Raises:
        UnlikeError: there is neither before it, or others read that.
    """
    source, given = _alone(node, uses), _made(pool)
    if given.operator.name != "relu":
        return _in_tiles(given, pool)
    check(all(map(_has_elements, *_slides(pool))))
    early = Node(pool.operator, {"input": given.operands["input"]}, pool.options, pool.outputs, pool.label, pool.drawn)
    try:
        _alone(source, uses)
        early = _in_tiles(_made(early), early)
    except UnlikeError:
        pass
    return Node(given.operator, {"input": early.results[0]}, given.options, pool.outputs, given.label, given.drawn)


def _made(node: Node) -> Node:
    """The node that the images come from."""
    value = single(node.operands["input"])
    if not isinstance(value, Output):
        raise UnlikeError
    return value.node


def _alone(node: Node, uses: Mapping[Value, int]) -> Node:
    """The same, if nobody else reads them."""
    made = _made(node)
    check(uses[single(node.operands["input"])] == 1)
    return made


def _slides(pool: Node) -> tuple[tuple[Slide, Slide], tuple[int, int]]:
    """How the windows of a pooling slide, and how many there are."""
    options: Any = pool.options
    _, _, *sizes = image_shape(pool.operand("input").shape, options["layout"])
    _, _, height, width = image_shape(pool.outputs[0].shape, options["layout"])
    window = options["window_dimensions"] or sizes
    return slides(sizes, window, options["padding"], options["strides"], options["dilations"]), (height, width)


def _has_elements(slide: Slide, count: int) -> bool:
    """Whether every window has an element that is no padding: without any the greatest is less than 0."""
    last = (count - 1) * slide.stride - slide.begin
    return slide.dilation == 1 and slide.begin < slide.window and last < slide.size


def _in_tiles(convolution: Node, pool: Node) -> Node:
    """A convolution and the pooling of its results, as one node.

    Raises:
        UnlikeError: it is no convolution, or one that is computed in another way.
    """
    check(convolution.operator.name == "conv2d" and pool.options["layout"] == "nchw")
    for slide, count in zip(*_slides(pool), strict=True):
        check(slide.window == slide.stride == PAIR and slide.dilation == 1 and not slide.begin)
        check(count * PAIR <= slide.size)
    conv = Convolution.of(convolution)
    check(conv.data_type == "float32" and conv.group_outputs == 1 and has_overlapping_rows(conv))
    check(not has_channel_runs(conv) and not has_low_images(conv))
    bias = convolution.operands.get("bias")
    if bias is not None:
        check(isinstance(bias, Constant) and np.isfinite(constant_array(bias.data)).all())
    options = {**convolution.options, "convolved": convolution.outputs[0]}
    drawn = tuple(sorted({*convolution.drawn, *pool.drawn}))
    return Node(POOLED_CONVOLUTION, convolution.operands, options, pool.outputs, convolution.label, drawn)
