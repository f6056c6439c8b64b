"""The register of all rules: importing the fourteen rooms fills the table."""

from webnn_py.onnx_models.rules import (  # noqa: F401 - imported for their rules
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
from webnn_py.onnx_models.table import TABLE, Rules

RULES: Rules = TABLE
"""The rules by operator and version of the operator."""
