"""Cases that a backend computes otherwise, each with its reason. A case that passes all the same is an error."""

_MASKED = "Elements outside of the image are zeros times the filter's elements, which are NaN where those are infinite."

EXCEPTIONS = {
    ("wgpu", "conv_transpose2d", "float32, NaN and infinities in the filter"): _MASKED,
    ("wgpu", "conv_transpose2d", "float16, NaN and infinities in the filter"): _MASKED,
}
"""(backend, operator, case) → the reason."""
