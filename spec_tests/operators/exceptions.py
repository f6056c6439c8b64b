"""Cases that a backend computes otherwise, each with its reason. A case that passes all the same is an error."""

_MASKED = "Elements outside of the image are zeros times the filter's elements, which are NaN where those are infinite."
_GELU = "It computes 1 + erf(x), which cancels below zero: off by less than 1e-6."
_WHERE = "It adds zeros to what it chooses, so that -0 becomes 0."

_ROUNDED = "Its convolutions in float16 round once more before the bias is added."

_DRIVER = "WGSL lets drivers approximate it; SwiftShader's is off by some units in the last place, near zero by 1e-7."
_SUBNORMAL = "WGSL lets drivers take subnormal numbers for zero, as SwiftShader does."
_FROM_UINT32 = "SwiftShader rounds the greatest integers otherwise."
_EVERY = "every extreme value with every other"

WEBGPU = {
    _DRIVER: {
        "erf": ("rank 0", "rank 1", "rank 4", "rank 5", "extreme values", "chosen values"),
        "exp": ("rank 5", "chosen values"),
        "gelu": ("rank 2", "rank 3", "rank 4", "rank 5", "extreme values", "chosen values"),
        "sigmoid": ("chosen values",),
        "softmax": ("[1, 2, 2, 1, 3], axis 4", "far apart, axis 0", "far apart, axis 1", "a long axis, axis 0"),
        "softplus": ("rank 1", "rank 3", "rank 4", "rank 5", "extreme values", "chosen values"),
        "tanh": ("rank 5", "extreme values", "chosen values"),
    },
    _SUBNORMAL: {
        **dict.fromkeys(("equal", "greater", "greater_or_equal", "lesser", "lesser_or_equal", "not_equal"), (_EVERY,)),
        "quantize_linear": [
            f"and {data_type}, extreme values, scale 0" for data_type in ("int32", "int8", "uint32", "uint8")
        ],
    },
}
"""Reason → operator → the cases of float32 that onnxruntime's WebGPU provider computes otherwise, on SwiftShader."""

FLUSHED = {("onnxruntime", "softmax")}
"""(backend, operator): where a processor lacks AVX-512, a result that is subnormal may be 0."""

EXCEPTIONS = {
    ("WebGpuExecutionProvider", "cast", "uint32 to float32"): _FROM_UINT32,
    **{
        ("WebGpuExecutionProvider", operator, f"float32{' ' if name.startswith('and') else ', '}{name}"): reason
        for reason, operators in WEBGPU.items()
        for operator, names in operators.items()
        for name in names
    },
    ("wgpu", "conv_transpose2d", "float32, NaN and infinities in the filter"): _MASKED,
    ("wgpu", "conv_transpose2d", "float16, NaN and infinities in the filter"): _MASKED,
    ("onnxruntime", "gelu", "float32, rank 3"): _GELU,
    ("onnxruntime", "gelu", "float32, rank 4"): _GELU,
    ("onnxruntime", "gelu", "float32, rank 5"): _GELU,
    ("onnxruntime", "gelu", "float32, chosen values"): _GELU,
    ("onnxruntime", "gru", "float32, large inputs"): "Its sigmoid and tanh are approximations: off by less than 1e-6.",
    ("onnxruntime", "hard_swish", "float32, rank 1"): "It multiplies by 1/6, which cancels near -3: off by 4e-7.",
    ("onnxruntime", "resample2d", "float32, NaN and infinities, linear"): (
        "An element that is met exactly is mixed with its neighbour by a weight of 0: 0 · Infinity."
    ),
    ("onnxruntime", "tanh", "float32, extreme values"): "It is off by 28 ULP for the smallest numbers.",
    ("onnxruntime", "where", "float32, extreme values"): _WHERE,
    ("onnxruntime", "where", "float16, extreme values"): _WHERE,
    ("CUDAExecutionProvider", "hard_swish", "float32, rank 1"): "It cancels near -3: off by 1e-7.",
    **{
        ("CUDAExecutionProvider", "conv2d", f"float16, {name}"): _ROUNDED
        for name in ("a filter of one element", *(f"random settings {number}" for number in (1, 9, 13, 25)))
    },
}
"""(backend or execution provider, operator, case) → the reason."""

FOLDED = "as_constant"
"""The drawer of constants, which onnxruntime computes on the CPU for every provider."""
