"""Make zeros of the subnormal numbers in the constants of products, which many processors compute in microcode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.graph_rewriting import rewrite, with_operands
from webnn_py.core.operators import convolution, matrix
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.rewriting.passes import GraphPass, PassContext, ReadConstant

READERS: Final[frozenset[Operator[..., Any]]] = frozenset(
    {convolution.conv2d, convolution.conv_transpose2d, matrix.gemm, matrix.matmul}
)

LEAST_ELEMENTS: Final = 1024
"""The elements of a constant from which on its products take long enough to matter."""

LEAST_SHARE: Final = 1e-4
"""The share of subnormal numbers from which on they matter: one takes as long as a hundred vectors of others."""

SAMPLE: Final = 2**16
"""The elements of a constant that are looked at first."""


def flushed(graph: Graph, contents: ReadConstant) -> Graph:
    """Return the graph in which subnormal numbers of large float32 factors and filters are zeros of their sign.

    Constants with few of them, and constant buffers, which are shared between graphs, stay as they are.

    Args:
        graph: the graph to rewrite.
        contents: returns the arrays of constants.
    """
    known: dict[Constant, Constant | None] = {}

    def replacement(value: Value) -> Constant | None:
        if not isinstance(value, Constant) or not isinstance(value.data, np.ndarray):
            return None
        if value not in known:
            array = _flushed(contents(value))
            key = None if value.key is None else ("without subnormal numbers", value.key)
            known[value] = None if array is None else Constant(value.descriptor, array, key)
        return known[value]

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator not in READERS:
            return None
        changed = {value: one for value in current.inputs if (one := replacement(value)) is not None}
        return {node.results[0]: with_operands(current, changed).results[0]} if changed else None

    return rewrite(graph, replace)


def _flushed(array: NDArray[Any]) -> NDArray[np.float32] | None:
    """Return an array without subnormal numbers; None where it has too few of them, or is not of float32."""
    if array.dtype != np.float32 or array.size < LEAST_ELEMENTS:
        return None
    bits = np.ascontiguousarray(array).view(np.uint32)
    if not _subnormal(bits.reshape(-1)[:: max(1, array.size // SAMPLE)]).any():
        return None
    places = _subnormal(bits)
    if np.count_nonzero(places) < LEAST_SHARE * array.size:
        return None
    return np.where(places, bits & np.uint32(0x80000000), bits).view(np.float32)


def _subnormal(bits: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return where numbers are subnormal, by their bits: floating-point comparisons may be slow, or flush them."""
    magnitudes = bits << np.uint32(1)
    places: NDArray[np.bool_] = (magnitudes - np.uint32(1)) < np.uint32(0x00FFFFFF)  # 0 becomes the greatest integer
    return places


def _run(graph: Graph, context: PassContext) -> Graph:
    return graph if context.keeps_subnormals else flushed(graph, context.contents)


SUBNORMAL_CONSTANTS: Final = GraphPass(name="subnormal-constants", run=_run, needs=READERS)
"""The pass, which the option ``keep_subnormals`` of a context leaves out."""
