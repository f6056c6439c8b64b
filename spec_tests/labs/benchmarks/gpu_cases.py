"""Single operators of vision and language models, as the builder, ONNX and torch have them."""

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import attrs

from webnn_py import MLGraphBuilder, MLOperand

ONNXRUNTIME = "onnxruntime-webgpu"
TORCH = "torch"


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
        data_type: of every input.
        float16_accumulation: as ``create_context()`` has it.
        before: element-wise ONNX operators before the node, each of which takes one of the other inputs.
    """

    name: str
    shapes: Sequence[Sequence[int]]
    draw: Callable[..., MLOperand]
    node: tuple[str, dict]
    torch: Callable
    flops: float = 0
    data_type: str = "float32"
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
        """The bytes that are read and written once; the output has the first input's shape."""
        sizes = [math.prod(shape) for shape in self.shapes]
        return (sum(sizes) + sizes[0]) * (2 if self.data_type == "float16" else 4)

    @property
    def amount(self) -> float:
        """The work of one run, in :attr:`unit`."""
        return self.byte_length / 1e9 if self.is_bound_by_memory else self.flops / 1e12

    @property
    def unit(self) -> str:
        return "GB/s" if self.is_bound_by_memory else "TFLOP/s"


def cube(size: int, data_type: str = "float32", *, float16_accumulation: bool = False) -> Case:
    """Return the product of two square matrices."""
    return Case(
        f"matmul {size}³ {data_type}{' summed in float16' if float16_accumulation else ''}",
        [[size, size], [size, size]],
        lambda builder, x, w: builder.matmul(x, w),
        ("MatMul", {}),
        lambda torch, x, w: torch.matmul(x, w),
        2 * size**3,
        data_type=data_type,
        float16_accumulation=float16_accumulation,
    )


def square(name: str, channels: int, size: int, window: int, groups: int = 1) -> Case:
    """Return a convolution of one image that keeps its shape."""
    pad, inner = window // 2, channels // groups
    return Case(
        name,
        [[1, channels, size, size], [channels, inner, window, window]],
        lambda builder, x, w: builder.conv2d(x, w, padding=[pad] * 4, groups=groups),
        ("Conv", {"pads": [pad] * 4, "group": groups}),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=pad, groups=groups),
        2 * channels * size**2 * inner * window**2,
    )


def memory_case(name: str, draw: Callable, node: tuple[str, dict], torch: Callable, **more: Any) -> Case:
    """Return an operator of 16 M floats in and out."""
    shapes = more.pop("shapes", [[4096, 4096]])
    return Case(name, shapes, draw, node, torch, **more)


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
    )


CASES = [
    cube(4096),
    cube(1024),
    cube(4096, "float16"),
    cube(4096, "float16", float16_accumulation=True),
    square("conv2d 3×3, 64 at 56²", 64, 56, 3),
    square("conv2d 3×3, 256 at 14²", 256, 14, 3),
    square("conv2d 1×1, 256 at 56²", 256, 56, 1),
    square("depthwise 3×3, 256 at 56²", 256, 56, 3, groups=256),
    attention_case(8, 512, "float32"),
    attention_case(8, 512, "float16"),
    memory_case("sigmoid, 16 M", lambda b, x: b.sigmoid(x), ("Sigmoid", {}), lambda t, x: t.sigmoid(x)),
    memory_case("softmax 4096²", lambda b, x: b.softmax(x, 1), ("Softmax", {"axis": 1}), lambda t, x: t.softmax(x, 1)),
    memory_case(
        "softmax 4096², scaled and masked before",
        lambda b, x, s, m: b.softmax(b.add(b.mul(x, s), m), 1),
        ("Softmax", {"axis": 1}),
        lambda t, x, s, m: t.softmax(x * s + m, 1),
        shapes=[[4096, 4096], [1], [4096]],
        before=("Mul", "Add"),
    ),
    memory_case(
        "layerNormalization 4096²",
        lambda b, x, s, c: b.layer_normalization(x, axes=[1], scale=s, bias=c),
        ("LayerNormalization", {"axis": 1}),
        lambda t, x, s, c: t.nn.functional.layer_norm(x, [4096], s, c),
        shapes=[[4096, 4096], [4096], [4096]],
    ),
    memory_case(
        "transpose 4096²",
        lambda b, x: b.transpose(x),
        ("Transpose", {"perm": [1, 0]}),
        lambda t, x: t.t(x).contiguous(),
    ),
]
