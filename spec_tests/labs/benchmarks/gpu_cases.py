"""The single operators that are timed on a GPU, as the builder, ONNX and torch have them, and what is to be reached."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import attrs

from spec_tests.labs.benchmarks.measure import OURS
from webnn_py import MLGraphBuilder, MLOperand

ONNXRUNTIME = "onnxruntime-webgpu"
TORCH = "torch"


@attrs.frozen
class Goal:
    """What is to be reached: so many units a second, so many times a peer's speed, or so few seconds."""

    rate: float | None = None
    ratio: float | None = None
    seconds: float | None = None

    def is_met(self, seconds: Mapping[str, float | None], amount: float) -> bool | None:
        """Whether it is; None where the peer could not be timed."""
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
        shapes: the inputs; the output has the first input's shape, so that onnxruntime can chain it.
        draw: (builder, operands) → the output.
        node: ONNX operator and attributes; its other inputs are the inputs after the first.
        torch: (torch, tensors) → the output.
        amount: what one run does, in ``unit``.
        unit: of the rate: TFLOP or GB a second.
        goal: what is to be reached.
        data_type: of every input.
        float16_accumulation: as ``create_context()`` has it.
        before: element-wise ONNX operators before the node, each of which takes one of the other inputs.
    """

    name: str
    shapes: Sequence[Sequence[int]]
    draw: Callable[..., MLOperand]
    node: tuple[str, dict]
    torch: Callable
    amount: float
    unit: str
    goal: Goal
    data_type: str = "float32"
    float16_accumulation: bool = False
    before: Sequence[str] = ()

    @property
    def is_bound_by_memory(self) -> bool:
        """Whether it moves more than it computes."""
        return self.unit == "GB/s"

    @property
    def takes_milliseconds(self) -> bool:
        """Whether one run takes a large GPU so long that twenty are enough to time."""
        return not self.is_bound_by_memory and self.amount > 0.02


def matmul_case(size: int, goal: Goal, data_type: str = "float32", *, float16_accumulation: bool = False) -> Case:
    accumulation = " summed in float16" if float16_accumulation else ""
    return Case(
        f"matmul {size}³ {data_type}{accumulation}",
        [[size, size], [size, size]],
        lambda builder, a, b: builder.matmul(a, b),
        ("MatMul", {}),
        lambda torch, a, b: torch.matmul(a, b),
        2 * size**3 / 1e12,
        "TFLOP/s",
        goal,
        data_type,
        float16_accumulation,
    )


def conv_case(name: str, channels: int, size: int, window: int, groups: int = 1) -> Case:
    pad = window // 2
    shapes = [[1, channels, size, size], [channels, channels // groups, window, window]]
    flops = 2 * channels * (channels // groups) * window**2 * size**2
    return Case(
        name,
        shapes,
        lambda builder, x, w: builder.conv2d(x, w, padding=[pad] * 4, groups=groups),
        ("Conv", {"pads": [pad] * 4, "group": groups}),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=pad, groups=groups),
        flops / 1e12,
        "TFLOP/s",
        Goal(ratio=1.3),
    )


def memory_case(name: str, goal: Goal, draw: Callable, node: tuple[str, dict], torch: Callable) -> Case:
    """16 M floats in and out."""
    return Case(name, [[4096, 4096]], draw, node, torch, 2 * 4 * 4096**2 / 1e9, "GB/s", goal)


def attend(builder: MLGraphBuilder, query: MLOperand, key: MLOperand, value: MLOperand) -> MLOperand:
    """Attention of twelve heads."""
    batch, tokens, width = query.shape
    size = width // 12

    def heads(x: MLOperand, permutation: list[int]) -> MLOperand:
        return builder.transpose(builder.reshape(x, [batch, tokens, 12, size]), permutation=permutation)

    scores = builder.matmul(heads(query, [0, 2, 1, 3]), heads(key, [0, 2, 3, 1]))
    scaled = builder.mul(scores, builder.constant(size**-0.5, data_type=query.data_type))
    mixed = builder.matmul(builder.softmax(scaled, 3), heads(value, [0, 2, 1, 3]))
    return builder.reshape(builder.transpose(mixed, permutation=[0, 2, 1, 3]), [batch, tokens, width])


def attend_in_torch(torch: ModuleType, *operands: Any) -> Any:
    """The same."""
    heads = [x.view(*x.shape[:2], 12, x.shape[2] // 12).transpose(1, 2) for x in operands]
    mixed = torch.nn.functional.scaled_dot_product_attention(*heads)
    return mixed.transpose(1, 2).reshape(operands[0].shape)


def attention_case(batch: int, tokens: int, data_type: str) -> Case:
    """Twelve heads of 64, as in BERT-base."""
    return Case(
        f"attention {batch}×12×{tokens}×64 {data_type}",
        [[batch, tokens, 768]] * 3,
        attend,
        ("MultiHeadAttention", {"num_heads": 12, "domain": "com.microsoft"}),
        attend_in_torch,
        4 * batch * tokens**2 * 768 / 1e12,
        "TFLOP/s",
        Goal(ratio=2),
        data_type,
    )


CASES = [
    matmul_case(4096, Goal(rate=36)),
    matmul_case(1024, Goal(ratio=1.3)),
    matmul_case(4096, Goal(rate=36), "float16"),
    matmul_case(4096, Goal(rate=45), "float16", float16_accumulation=True),
    conv_case("conv2d 3×3, 64 at 56²", 64, 56, 3),
    conv_case("conv2d 3×3, 256 at 14²", 256, 14, 3),
    conv_case("conv2d 1×1, 256 at 56²", 256, 56, 1),
    conv_case("depthwise 3×3, 256 at 56²", 256, 56, 3, groups=256),
    attention_case(8, 512, "float32"),
    attention_case(8, 512, "float16"),
    memory_case(
        "sigmoid, 16 M", Goal(rate=3000), lambda b, x: b.sigmoid(x), ("Sigmoid", {}), lambda t, x: t.sigmoid(x)
    ),
    memory_case(
        "softmax 4096²",
        Goal(rate=2500),
        lambda b, x: b.softmax(x, 1),
        ("Softmax", {"axis": 1}),
        lambda t, x: t.softmax(x, 1),
    ),
    Case(
        "softmax 4096², scaled and masked before",
        [[4096, 4096], [1], [4096]],
        lambda b, x, s, m: b.softmax(b.add(b.mul(x, s), m), 1),
        ("Softmax", {"axis": 1}),
        lambda t, x, s, m: t.softmax(x * s + m, 1),
        2 * 4 * 4096**2 / 1e9,
        "GB/s",
        Goal(rate=2500),
        before=("Mul", "Add"),
    ),
    Case(
        "layerNormalization 4096²",
        [[4096, 4096], [4096], [4096]],
        lambda b, x, s, c: b.layer_normalization(x, axes=[1], scale=s, bias=c),
        ("LayerNormalization", {"axis": 1}),
        lambda t, x, s, c: t.nn.functional.layer_norm(x, [4096], s, c),
        2 * 4 * 4096 * 4096 / 1e9,
        "GB/s",
        Goal(rate=2500),
    ),
    memory_case(
        "transpose 4096²",
        Goal(rate=1500),
        lambda b, x: b.transpose(x),
        ("Transpose", {"perm": [1, 0]}),
        lambda t, x: t.t(x).contiguous(),
    ),
]
