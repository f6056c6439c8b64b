"""Ensembles of decision trees, as one node or as a descent through all trees at once, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import numpy as np
import numpy.typing as npt

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import LimitsRow, limit
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_shape, output

Array = npt.NDArray[Any]

Comparison = Literal["lesser_or_equal", "lesser", "greater_or_equal", "greater"]
"""The operator by which nodes of trees compare a feature with a threshold."""

COMPARISONS: Final[Mapping[str, Comparison]] = {
    "BRANCH_LEQ": "lesser_or_equal",
    "BRANCH_LT": "lesser",
    "BRANCH_GTE": "greater_or_equal",
    "BRANCH_GT": "greater",
}
"""The comparisons by the modes that ONNX gives to nodes."""

ROWS: Final = limit(("float32",), rank=2)

LIMITS: Final[LimitsRow] = {
    "input": ROWS,
    "nodes": limit(("int32",), rank=2),
    "thresholds": limit(("float32",), rank=1),
    "weights": ROWS,
    "output0": ROWS,
}


def tree_ensemble(
    input: MLOperand,
    nodes: MLOperand,
    thresholds: MLOperand,
    weights: MLOperand,
    *,
    comparison: Comparison,
    depth: int,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Add up the weights of the leaves that each row reaches, over all trees.

    All operands but ``input`` are constants.

    Args:
        input: [rows, features].
        nodes: tree by tree, from the root, five columns: the number of the tree, the feature that is compared, the
            indices of the nodes for "no" and for "yes", of a leaf its own, and 1 where NaN is "yes": [nodes, 5].
        thresholds: the numbers that features are compared with, [nodes].
        weights: those of leaves, [nodes, targets].
        comparison: the operator that compares.
        depth: how many levels of comparisons there are at most.
        label: the name of the node.

    Returns:
        [rows, targets].
    """
    count, targets = weights.shape
    check_shape("nodes", nodes, [count, 5])
    check_shape("thresholds", thresholds, [count])
    return [output("float32", (input.shape[0], targets))]


def constant(builder: Builder, array: Array) -> MLOperand:
    """Return an array as a constant."""
    data_type = cast("MLOperandDataType", array.dtype.name)
    return builder.constant(array.tobytes(), data_type=data_type, shape=array.shape)


def by_levels(
    builder: Builder,
    input: MLOperand,
    *,
    nodes: Array,
    thresholds: Array,
    weights: Array,
    comparison: Comparison,
    depth: int,
) -> list[MLOperand]:
    """Draw :func:`tree_ensemble`, of which all but the input is given as arrays."""
    trees, features, noes, yeses, missing = nodes.T
    tables = [constant(builder, array) for array in (features, thresholds, noes, yeses)]
    missing_is_yes = constant(builder, missing.astype(np.uint8)) if missing.any() else None
    roots = np.unique(trees, return_index=True)[1].astype(np.int32)
    place = constant(builder, np.tile(roots, [input.shape[0], 1]))
    for _ in range(depth):
        feature, threshold, no, yes = [builder.gather(table, place) for table in tables]
        value = builder.gather_elements(input, feature, axis=1)
        is_yes = getattr(builder, comparison)(value, threshold)
        if missing_is_yes is not None:
            goes_to_yes = builder.logical_and(builder.is_nan(value), builder.gather(missing_is_yes, place))
            is_yes = builder.logical_or(is_yes, goes_to_yes)
        place = builder.where(is_yes, yes, no)
    return [builder.reduce_sum(builder.gather(constant(builder, weights), place), axes=[1])]


TREE_ENSEMBLE: Final = Composite(
    tree_ensemble, "treeEnsemble", LIMITS, by_levels, tables=("nodes", "thresholds", "weights")
)
