"""Single operators of vision and language models, as the builder, ONNX and torch have them, and their goals."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import attrs

from spec_tests.labs.benchmarks.measure import OURS
from webnn_py import MLGraphBuilder, MLOperand

ONNXRUNTIME = "onnxruntime-webgpu"
TORCH = "torch"
PRODUCT = "product"
CONVOLUTION = "conv2d"
FLOAT32_AND_16 = ("float32", "float16")


@attrs.frozen
class Goal:
    """A goal: a rate in units a second, a multiple of a peer's speed, or a time."""

    rate: float | None = None
    ratio: float | None = None
    seconds: float | None = None

    def is_met(self, seconds: Mapping[str, float | None], amount: float) -> bool | None:
        """Return whether it is met; None where the peer could not be timed."""
        ours, peer = seconds[OURS], seconds.get(ONNXRUNTIME)
        assert ours is not None
        if self.ratio is not None:
            return None if not peer else peer >= self.ratio * ours
        return amount >= self.rate * ours if self.rate is not None else ours <= (self.seconds or 0)


@attrs.frozen
class Case:
    """One operator.

    Attributes:
        name: what the table says.
        shapes: of the inputs; those after the first may be constants.
        draw: (builder, operands) → the output.
        node: ONNX operator and attributes; its other inputs are the inputs after the first.
        torch: (torch, tensors) → the output.
        flops: multiplications and additions; 0 if it is bound by memory.
        output: the elements of the output; those of the first input if it is None.
        data_type: of every input.
        goal: what is to be reached, if anything; the output then has the first input's shape, so that onnxruntime can
            chain it.
        float16_accumulation: as ``create_context()`` has it.
        before: element-wise ONNX operators before the node, each of which takes one of the other inputs.
    """

    name: str
    shapes: Sequence[Sequence[int]]
    draw: Callable[..., MLOperand]
    node: tuple[str, dict]
    torch: Callable
    flops: float = 0
    output: int | None = None
    data_type: str = "float32"
    goal: Goal | None = None
    float16_accumulation: bool = False
    before: Sequence[str] = ()

    @property
    def is_bound_by_memory(self) -> bool:
        return not self.flops

    @property
    def takes_milliseconds(self) -> bool:
        """Return whether one run takes a large GPU so long that twenty are enough to time."""
        return self.flops > 2e10

    @property
    def byte_length(self) -> int:
        """The bytes that are read and written once."""
        sizes = [math.prod(shape) for shape in self.shapes]
        output = sizes[0] if self.output is None else self.output
        return (sum(sizes) + output) * (2 if self.data_type == "float16" else 4)

    @property
    def amount(self) -> float:
        """The work of one run, in :attr:`unit`."""
        return self.byte_length / 1e9 if self.is_bound_by_memory else self.flops / 1e12

    @property
    def unit(self) -> str:
        return "GB/s" if self.is_bound_by_memory else "TFLOP/s"

    def least_seconds(self, byte_rate: float, flop_rate: float) -> float:
        """Return how long a device takes at least that moves and computes so much a second."""
        return max(self.byte_length / byte_rate, self.flops / flop_rate)


def product(rows: int, size: int = 4096, data_type: str = "float32", name: str = "", **more: Any) -> Case:
    """Return the product of some rows and a square matrix."""
    return Case(
        name or f"{PRODUCT} {rows} × {size}² {data_type}",
        [[rows, size], [size, size]],
        lambda builder, x, w: builder.matmul(x, w),
        ("MatMul", {}),
        lambda torch, x, w: torch.matmul(x, w),
        2 * rows * size**2,
        rows * size,
        data_type,
        **more,
    )


def cube(size: int, goal: Goal, data_type: str = "float32", *, float16_accumulation: bool = False) -> Case:
    name = f"matmul {size}³ {data_type}{' summed in float16' if float16_accumulation else ''}"
    return product(size, size, data_type, name, goal=goal, float16_accumulation=float16_accumulation)


def conv(
    batch: int,
    channels: tuple[int, int],
    size: int,
    window: int = 3,
    *,
    stride: int = 1,
    groups: int = 1,
    data_type: str = "float32",
    name: str = "",
    goal: Goal | None = None,
) -> Case:
    """Return a convolution from channels before to channels after."""
    before, after = channels
    pad, out = window // 2, -(-size // stride)
    inner = before // groups
    kind = "depthwise" if groups == before else CONVOLUTION
    flow = f"{before}" if before == after else f"{before}→{after}"
    stepped = "" if stride == 1 else f" stride {stride}"
    return Case(
        name or f"{kind} {window}×{window}{stepped}, {batch}×{flow}@{size}² {data_type}",
        [[batch, before, size, size], [after, inner, window, window]],
        lambda builder, x, w: builder.conv2d(x, w, padding=[pad] * 4, strides=[stride] * 2, groups=groups),
        ("Conv", {"pads": [pad] * 4, "strides": [stride] * 2, "group": groups}),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad, groups=groups),
        2 * batch * after * out**2 * inner * window**2,
        batch * after * out**2,
        data_type,
        goal,
    )


def square(name: str, channels: int, size: int, window: int, groups: int = 1) -> Case:
    return conv(1, (channels, channels), size, window, groups=groups, name=name, goal=Goal(ratio=1.3))


def memory_case(name: str, rate: float, draw: Callable, node: tuple[str, dict], torch: Callable, **more: Any) -> Case:
    """Return an operator of 16 M floats in and out."""
    shapes = more.pop("shapes", [[4096, 4096]])
    return Case(name, shapes, draw, node, torch, goal=Goal(rate=rate), **more)


def attend(builder: MLGraphBuilder, query: MLOperand, key: MLOperand, value: MLOperand) -> MLOperand:
    """Draw attention of twelve heads."""
    batch, tokens, width = query.shape
    size = width // 12

    def heads(x: MLOperand, permutation: list[int]) -> MLOperand:
        return builder.transpose(builder.reshape(x, [batch, tokens, 12, size]), permutation=permutation)

    scores = builder.matmul(heads(query, [0, 2, 1, 3]), heads(key, [0, 2, 3, 1]))
    scaled = builder.mul(scores, builder.constant(size**-0.5, data_type=query.data_type))
    mixed = builder.matmul(builder.softmax(scaled, 3), heads(value, [0, 2, 1, 3]))
    return builder.reshape(builder.transpose(mixed, permutation=[0, 2, 1, 3]), [batch, tokens, width])


def attend_in_torch(torch: ModuleType, *operands: Any) -> Any:
    heads = [x.view(*x.shape[:2], 12, x.shape[2] // 12).transpose(1, 2) for x in operands]
    mixed = torch.nn.functional.scaled_dot_product_attention(*heads)
    return mixed.transpose(1, 2).reshape(operands[0].shape)


def attention_case(batch: int, tokens: int, data_type: str) -> Case:
    """Return attention of twelve heads of 64, as in BERT-base."""
    return Case(
        f"attention {batch}×12×{tokens}×64 {data_type}",
        [[batch, tokens, 768]] * 3,
        attend,
        ("MultiHeadAttention", {"num_heads": 12, "domain": "com.microsoft"}),
        attend_in_torch,
        4 * batch * tokens**2 * 768,
        data_type=data_type,
        goal=Goal(ratio=2),
    )


def transposed(batch: int, channels: tuple[int, int], size: int, window: int) -> Case:
    """Return a transposed convolution that doubles height and width."""
    before, after = channels
    pad = window // 2 - 1
    return Case(
        f"transposed {window}×{window} stride 2, {batch}×{before}→{after}@{size}² float32",
        [[batch, before, size, size], [before, after, window, window]],
        lambda builder, x, w: builder.conv_transpose2d(x, w, padding=[pad] * 4, strides=[2, 2]),
        ("ConvTranspose", {"pads": [pad] * 4, "strides": [2, 2]}),
        lambda torch, x, w: torch.nn.functional.conv_transpose2d(x, w, stride=2, padding=pad),
        2 * batch * before * after * size**2 * window**2,
        batch * after * (2 * size) ** 2,
    )


def pool(kind: str, batch: int, channels: int, size: int, stride: int) -> Case:
    """Return pooling of windows of 3 × 3."""
    method, operator = {"max": ("max_pool2d", "MaxPool"), "average": ("average_pool2d", "AveragePool")}[kind]
    options = {"padding": [1] * 4, "strides": [stride] * 2, "window_dimensions": [3, 3]}
    out = -(-size // stride)
    return Case(
        f"{kind} pooling 3×3 stride {stride}, {batch}×{channels}@{size}² float32",
        [[batch, channels, size, size]],
        lambda builder, x: getattr(builder, method)(x, **options),
        (operator, {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [stride] * 2}),
        lambda torch, x: _pool_of(torch, kind)(x, 3, stride, 1),
        9 * batch * channels * out**2,
        batch * channels * out**2,
    )


def _pool_of(torch, kind: str) -> Callable:
    functional = torch.nn.functional
    return functional.max_pool2d if kind == "max" else functional.avg_pool2d


CASES = [
    cube(4096, Goal(rate=36)),
    cube(1024, Goal(ratio=1.3)),
    cube(4096, Goal(rate=36), "float16"),
    cube(4096, Goal(rate=45), "float16", float16_accumulation=True),
    square("conv2d 3×3, 64 at 56²", 64, 56, 3),
    square("conv2d 3×3, 256 at 14²", 256, 14, 3),
    square("conv2d 1×1, 256 at 56²", 256, 56, 1),
    square("depthwise 3×3, 256 at 56²", 256, 56, 3, groups=256),
    attention_case(8, 512, "float32"),
    attention_case(8, 512, "float16"),
    memory_case("sigmoid, 16 M", 3000, lambda b, x: b.sigmoid(x), ("Sigmoid", {}), lambda t, x: t.sigmoid(x)),
    memory_case(
        "softmax 4096²", 2500, lambda b, x: b.softmax(x, 1), ("Softmax", {"axis": 1}), lambda t, x: t.softmax(x, 1)
    ),
    memory_case(
        "softmax 4096², scaled and masked before",
        2500,
        lambda b, x, s, m: b.softmax(b.add(b.mul(x, s), m), 1),
        ("Softmax", {"axis": 1}),
        lambda t, x, s, m: t.softmax(x * s + m, 1),
        shapes=[[4096, 4096], [1], [4096]],
        before=("Mul", "Add"),
    ),
    memory_case(
        "layerNormalization 4096²",
        2500,
        lambda b, x, s, c: b.layer_normalization(x, axes=[1], scale=s, bias=c),
        ("LayerNormalization", {"axis": 1}),
        lambda t, x, s, c: t.nn.functional.layer_norm(x, [4096], s, c),
        shapes=[[4096, 4096], [4096], [4096]],
    ),
    memory_case(
        "transpose 4096²",
        1500,
        lambda b, x: b.transpose(x),
        ("Transpose", {"perm": [1, 0]}),
        lambda t, x: t.t(x).contiguous(),
    ),
]
"""Those that have goals."""

IMAGES = ((64, 56), (128, 28), (256, 14), (512, 7))
"""Channels and sizes of ResNet's 3×3 convolutions."""

ROOF_CASES = [
    *(product(rows, data_type=data_type) for rows in (1, 8, 16, 64) for data_type in FLOAT32_AND_16),
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
"""Those that are compared with what the device does at most."""
