"""The register of all operators: importing the fourteen rooms fills it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from webnn_py.operators import (  # noqa: F401 - imported for their declarations
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
from webnn_py.operators.declaration import DECLARED, Operator

OPERATORS: Mapping[str, Operator[..., Any]] = MappingProxyType(DECLARED)
"""Every operator by its Python name."""
