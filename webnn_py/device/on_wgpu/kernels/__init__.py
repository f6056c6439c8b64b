"""The WGSL kernels, one module per room of operators; importing this fills the table."""

from webnn_py.device.on_wgpu.kernels import (  # noqa: F401 - imported for their kernels
    _softmax,
    activation,
    arithmetic,
    conversion,
    convolution,
    indexing,
    logical,
    matrix,
    movement,
    normalization,
    pooling,
    recurrent,
    reduction,
    resampling,
    unary,
)
