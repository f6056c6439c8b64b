"""Single operators of vision and language models, and the least bytes and operations that each takes."""

import math
from collections.abc import Callable, Sequence

import attrs

from webnn_py import MLOperand

PRODUCT = "product"
CONVOLUTION = "conv2d"


@attrs.frozen
class RoofCase:
    """One operator of an input ``x`` and, where it has weights, of a constant.

    Attributes:
        name: what the table says.
        shape: of the input.
        weights: their shape; empty where there are none.
        draw: (builder, operands) → the output.
        node: ONNX operator and attributes.
        torch: (torch, tensors) → the output.
        output: the elements of the output.
        flops: multiplications and additions.
        data_type: of all.
    """

    name: str
    shape: Sequence[int]
    weights: Sequence[int]
    draw: Callable[..., MLOperand]
    node: tuple[str, dict]
    torch: Callable
    output: int
    flops: float
    data_type: str = "float32"

    @property
    def byte_length(self) -> int:
        """What is read and written once."""
        elements = math.prod(self.shape) + (math.prod(self.weights) if self.weights else 0) + self.output
        return elements * (2 if self.data_type == "float16" else 4)

    def least_seconds(self, byte_rate: float, flop_rate: float) -> float:
        """How long a device takes at least that moves and computes so much a second."""
        return max(self.byte_length / byte_rate, self.flops / flop_rate)


def product(rows: int, size: int = 4096, data_type: str = "float32") -> RoofCase:
    """A few rows times a square matrix."""
    return RoofCase(
        f"{PRODUCT} {rows} × {size}² {data_type}",
        [rows, size],
        [size, size],
        lambda builder, x, w: builder.matmul(x, w),
        ("MatMul", {}),
        lambda torch, x, w: torch.matmul(x, w),
        rows * size,
        2 * rows * size**2,
        data_type,
    )


def conv(
    batch: int,
    channels: tuple[int, int],
    size: int,
    window: int = 3,
    *,
    stride: int = 1,
    groups: int = 1,
    data_type: str = "float32",
) -> RoofCase:
    """A convolution from so many channels to so many."""
    before, after = channels
    pad, out = window // 2, -(-size // stride)
    inner = before // groups
    kind = "depthwise" if groups == before else CONVOLUTION
    flow = f"{before}" if before == after else f"{before}→{after}"
    stepped = "" if stride == 1 else f" stride {stride}"
    return RoofCase(
        f"{kind} {window}×{window}{stepped}, {batch}×{flow}@{size}² {data_type}",
        [batch, before, size, size],
        [after, inner, window, window],
        lambda builder, x, w: builder.conv2d(x, w, padding=[pad] * 4, strides=[stride] * 2, groups=groups),
        ("Conv", {"pads": [pad] * 4, "strides": [stride] * 2, "group": groups}),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad, groups=groups),
        batch * after * out**2,
        2 * batch * after * out**2 * inner * window**2,
        data_type,
    )


def transposed(batch: int, channels: tuple[int, int], size: int, window: int) -> RoofCase:
    """A transposed convolution that doubles height and width."""
    before, after = channels
    pad = window // 2 - 1
    return RoofCase(
        f"transposed {window}×{window} stride 2, {batch}×{before}→{after}@{size}² float32",
        [batch, before, size, size],
        [before, after, window, window],
        lambda builder, x, w: builder.conv_transpose2d(x, w, padding=[pad] * 4, strides=[2, 2]),
        ("ConvTranspose", {"pads": [pad] * 4, "strides": [2, 2]}),
        lambda torch, x, w: torch.nn.functional.conv_transpose2d(x, w, stride=2, padding=pad),
        batch * after * (2 * size) ** 2,
        2 * batch * before * after * size**2 * window**2,
    )


def pool(kind: str, batch: int, channels: int, size: int, stride: int) -> RoofCase:
    """Pooling of windows of 3 × 3."""
    method, operator = {"max": ("max_pool2d", "MaxPool"), "average": ("average_pool2d", "AveragePool")}[kind]
    options = {"padding": [1] * 4, "strides": [stride] * 2, "window_dimensions": [3, 3]}
    out = -(-size // stride)
    return RoofCase(
        f"{kind} pooling 3×3 stride {stride}, {batch}×{channels}@{size}² float32",
        [batch, channels, size, size],
        (),
        lambda builder, x: getattr(builder, method)(x, **options),
        (operator, {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [stride] * 2}),
        lambda torch, x: _pool_of(torch, kind)(x, 3, stride, 1),
        batch * channels * out**2,
        9 * batch * channels * out**2,
    )


def _pool_of(torch, kind: str) -> Callable:
    functional = torch.nn.functional
    return functional.max_pool2d if kind == "max" else functional.avg_pool2d


IMAGES = ((64, 56), (128, 28), (256, 14), (512, 7))
"""Channels and sizes of ResNet's 3×3 convolutions."""

ROOF_CASES = [
    *(product(rows, data_type=data_type) for rows in (1, 8, 16, 64) for data_type in ("float32", "float16")),
    *(conv(batch, (width, width), size) for batch in (1, 16) for width, size in IMAGES),
    *(conv(16, (width, width), size, data_type="float16") for width, size in IMAGES[:2]),
    *(conv(16, (width, 4 * width), size, 1) for width, size in IMAGES),
    *(conv(16, (4 * width, width), size, 1) for width, size in IMAGES),
    conv(16, (256, 512), 56, 1, stride=2),
    conv(1, (3, 64), 224, 7, stride=2),
    conv(16, (3, 64), 224, 7, stride=2),
    conv(16, (128, 128), 56, 3, stride=2),
    conv(16, (256, 256), 56, 3, groups=256),
    conv(16, (256, 256), 56, 5, groups=256),
    conv(16, (256, 256), 56, 3, stride=2, groups=256),
    transposed(8, (128, 64), 56, 4),
    transposed(8, (128, 64), 56, 2),
    pool("max", 8, 64, 112, 1),
    pool("max", 8, 64, 112, 2),
    pool("average", 8, 64, 112, 2),
]
