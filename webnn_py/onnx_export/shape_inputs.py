"""The inputs whose values determine shapes, which must stay in a model's own file.

onnxruntime infers shapes as soon as it has parsed a model. It has not read by then what lies outside of the file, in
memory or in another one, and refuses a model that has such an input there: "Cannot parse data from external tensors".
Once it has the shapes, constants may lie anywhere, also those that kernels and optimizers look at.
"""

from collections.abc import Sequence
from typing import Final

SHAPED_BY_INPUTS: Final = frozenset(
    {
        "Expand",
        "Pad",
        "Reshape",
        "Resize",
        "Slice",
        "Split",
        "SplitToSequence",
        "Tile",
    }
)
"""Operators, besides reductions, whose results have shapes that depend on the values of all inputs but the first.

All of those that :mod:`webnn_py.onnx_export` writes, to which the tests hold it. Of the others, which models have that
are read and written again, only SplitToSequence has a value for each part. Those of Range, TopK, Unsqueeze and the rest
are as few as axes, and constants as short never lie outside.
"""


def shape_inputs(operator: str, inputs: Sequence[str]) -> Sequence[str]:
    """Return those of a node's inputs on whose values the shapes of its outputs depend."""
    is_shaped = operator in SHAPED_BY_INPUTS or operator.startswith("Reduce")
    return inputs[1:] if is_shaped else ()
