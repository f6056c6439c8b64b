"""Cases that a backend computes otherwise, each with its reason. A case that passes all the same is an error."""

_MASKED = "Elements outside of the image are zeros times the filter's elements, which are NaN where those are infinite."
_GELU = "It computes 1 + erf(x), which cancels below zero: off by less than 1e-6."
_WHERE = "It adds zeros to what it chooses, so that -0 becomes 0."

_ROUNDED = "Its convolutions in float16 round once more before the bias is added."

FLUSHED = {("onnxruntime", "softmax")}
"""(backend, operator): where a processor lacks AVX-512, a result that is subnormal may be 0."""

EXCEPTIONS = {
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
    **{
        ("CUDAExecutionProvider", "conv2d", f"float16, {name}"): _ROUNDED
        for name in ("a filter of one element", *(f"random settings {number}" for number in (1, 9, 13, 25)))
    },
}
"""(backend or execution provider, operator, case) → the reason."""

FOLDED = "as_constant"
"""The drawer of constants, which onnxruntime computes on the CPU for every provider."""
