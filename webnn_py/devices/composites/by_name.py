"""Operators and composites by name, as files name them."""

from typing import Any

from webnn_py.core.operators.composite import COMPOSITES
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.composites import (  # noqa: F401 - they enter theirs
    block_quantized,
    cached_attention,
    dynamic_quantization,
    loops,
    tree_ensemble,
)
from webnn_py.devices.composites import subgraph_call as subgraphs  # noqa: F401 - it enters its own


def operator_of(name: str) -> Operator[..., Any]:
    """Return an operator of the specification, or a composite of this package or one that was declared, by Python name.

    Raises:
        KeyError: there is none of that name.
    """
    return COMPOSITES[name] if name in COMPOSITES else OPERATORS[name]
