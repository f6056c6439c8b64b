"""Operators expressed by others: for all options, the emulations of the specification or equivalent ones.

Each function is called as the operator of its name is, with a builder in front and without a label, and returns what
that operator's method would. Numbers take the data type of the input; float16 is computed in float32 and rounded once.
What they end in are the primitives, which have none: arithmetic, equal, greater, lesser, where, cast, abs, the
elementary functions, matmul, four reductions, concat, expand, reshape, slice, transpose, gather and scatter_nd.

A device has them run in the place of operators that it does not claim (``device/expansion.py``).
"""

from collections.abc import Mapping
from typing import Final

from webnn_py.operators.decomposing import elementwise, images, moving, reducing
from webnn_py.operators.decomposing.common import Decomposition, widened
from webnn_py.operators.unrolling import gru, gru_cell, lstm, lstm_cell

DECOMPOSITIONS: Final[Mapping[str, Decomposition]] = {
    function.__name__: function
    for function in (
        reducing.arg_min,
        reducing.arg_max,
        reducing.batch_normalization,
        elementwise.clamp,
        images.conv2d,
        images.conv_transpose2d,
        reducing.cumulative_sum,
        elementwise.not_equal,
        elementwise.greater_or_equal,
        elementwise.lesser_or_equal,
        elementwise.logical_not,
        elementwise.logical_and,
        elementwise.logical_or,
        elementwise.logical_xor,
        elementwise.is_nan,
        elementwise.is_infinite,
        elementwise.ceil,
        elementwise.identity,
        elementwise.neg,
        elementwise.reciprocal,
        elementwise.sign,
        elementwise.tan,
        elementwise.dequantize_linear,
        elementwise.quantize_linear,
        elementwise.elu,
        moving.gather_elements,
        moving.gather_nd,
        elementwise.gelu,
        reducing.gemm,
        *(widened(function) for function in (gru, gru_cell)),
        elementwise.hard_sigmoid,
        elementwise.hard_swish,
        reducing.instance_normalization,
        reducing.layer_normalization,
        elementwise.leaky_relu,
        elementwise.linear,
        *(widened(function) for function in (lstm, lstm_cell)),
        moving.pad,
        images.average_pool2d,
        images.l2_pool2d,
        images.max_pool2d,
        elementwise.prelu,
        reducing.reduce_l1,
        reducing.reduce_l2,
        reducing.reduce_log_sum,
        reducing.reduce_log_sum_exp,
        reducing.reduce_mean,
        reducing.reduce_sum_square,
        elementwise.relu,
        images.resample2d,
        moving.reverse,
        moving.scatter_elements,
        elementwise.sigmoid,
        reducing.softmax,
        elementwise.softplus,
        elementwise.softsign,
        moving.split,
        elementwise.tanh,
        moving.tile,
        moving.triangular,
    )
}
"""The decompositions by the operators' names, in the order of the specification."""
