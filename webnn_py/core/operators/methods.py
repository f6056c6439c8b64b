"""The operators as methods of builders, in the order of the specification."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, overload

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.operators import (
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
from webnn_py.core.operators.declaration import Operator, OutputT, P
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.operand import MLOperand

_describe: list[Callable[[Operator[..., Any]], str]] = [lambda operator: operator.__doc__ or ""]


def describe_methods_by(describe: Callable[[Operator[..., Any]], str]) -> None:
    """Have a function make the docstrings of methods, in the place of those that declarations have by hand."""
    _describe[:] = [describe]


class OperatorMethod(Generic[P, OutputT]):
    """The builder's method that follows from a declaration: the same parameters, operands for descriptors."""

    def __init__(self, operator: Operator[P, OutputT]) -> None:
        self._operator: Operator[P, OutputT] = operator

    @cached_property
    def _function(self) -> Callable[..., Any]:
        operator: Operator[..., Any] = self._operator

        def method(builder: OperatorMethods, /, *args: object, **kwargs: object) -> Any:
            return builder.append(operator, *args, **kwargs)

        method.__module__ = "webnn_py"
        method.__name__ = operator.name
        method.__qualname__ = f"MLGraphBuilder.{operator.name}"
        method.__doc__ = _describe[0](operator)
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        returns = list[MLOperand] if operator.returns_sequence else MLOperand
        method.__annotations__ = {**operator.hints, "return": returns}
        signature = inspect.Signature([own, *operator.signature.parameters.values()], return_annotation=returns)
        method.__dict__["__signature__"] = signature
        # What looks for the source finds the declaration; so do tracebacks and profilers.
        declared = operator.function.__code__
        method.__code__ = method.__code__.replace(
            co_filename=declared.co_filename,
            co_firstlineno=declared.co_firstlineno,
            co_name=operator.name,
            co_qualname=method.__qualname__,
        )
        return method

    @overload
    def __get__(
        self: OperatorMethod[P, MLOperandDescriptor], builder: OperatorMethods | None, owner: type
    ) -> Callable[P, MLOperand]: ...
    @overload
    def __get__(
        self: OperatorMethod[P, list[MLOperandDescriptor]], builder: OperatorMethods | None, owner: type
    ) -> Callable[P, list[MLOperand]]: ...
    def __get__(self, builder: OperatorMethods | None, owner: type) -> Any:
        return self._function if builder is None else types.MethodType(self._function, builder)


class OperatorMethods:
    """One method per operator."""

    arg_min = OperatorMethod(reduction.arg_min)
    arg_max = OperatorMethod(reduction.arg_max)
    batch_normalization = OperatorMethod(normalization.batch_normalization)
    cast = OperatorMethod(conversion.cast)
    clamp = OperatorMethod(activation.clamp)
    concat = OperatorMethod(movement.concat)
    conv2d = OperatorMethod(convolution.conv2d)
    conv_transpose2d = OperatorMethod(convolution.conv_transpose2d)
    cumulative_sum = OperatorMethod(reduction.cumulative_sum)
    add = OperatorMethod(arithmetic.add)
    sub = OperatorMethod(arithmetic.sub)
    mul = OperatorMethod(arithmetic.mul)
    div = OperatorMethod(arithmetic.div)
    max = OperatorMethod(arithmetic.max_)
    min = OperatorMethod(arithmetic.min_)
    pow = OperatorMethod(arithmetic.pow_)
    equal = OperatorMethod(logical.equal)
    not_equal = OperatorMethod(logical.not_equal)
    greater = OperatorMethod(logical.greater)
    greater_or_equal = OperatorMethod(logical.greater_or_equal)
    lesser = OperatorMethod(logical.lesser)
    lesser_or_equal = OperatorMethod(logical.lesser_or_equal)
    logical_not = OperatorMethod(logical.logical_not)
    logical_and = OperatorMethod(logical.logical_and)
    logical_or = OperatorMethod(logical.logical_or)
    logical_xor = OperatorMethod(logical.logical_xor)
    is_nan = OperatorMethod(logical.is_nan)
    is_infinite = OperatorMethod(logical.is_infinite)
    abs = OperatorMethod(unary.abs_)
    ceil = OperatorMethod(unary.ceil)
    cos = OperatorMethod(unary.cos)
    erf = OperatorMethod(unary.erf)
    exp = OperatorMethod(unary.exp)
    floor = OperatorMethod(unary.floor)
    identity = OperatorMethod(unary.identity)
    log = OperatorMethod(unary.log)
    neg = OperatorMethod(unary.neg)
    reciprocal = OperatorMethod(unary.reciprocal)
    round_even = OperatorMethod(unary.round_even)
    sin = OperatorMethod(unary.sin)
    sign = OperatorMethod(unary.sign)
    sqrt = OperatorMethod(unary.sqrt)
    tan = OperatorMethod(unary.tan)
    dequantize_linear = OperatorMethod(conversion.dequantize_linear)
    quantize_linear = OperatorMethod(conversion.quantize_linear)
    elu = OperatorMethod(activation.elu)
    expand = OperatorMethod(movement.expand)
    gather = OperatorMethod(indexing.gather)
    gather_elements = OperatorMethod(indexing.gather_elements)
    gather_nd = OperatorMethod(indexing.gather_nd)
    gelu = OperatorMethod(activation.gelu)
    gemm = OperatorMethod(matrix.gemm)
    gru = OperatorMethod(recurrent.gru)
    gru_cell = OperatorMethod(recurrent.gru_cell)
    hard_sigmoid = OperatorMethod(activation.hard_sigmoid)
    hard_swish = OperatorMethod(activation.hard_swish)
    instance_normalization = OperatorMethod(normalization.instance_normalization)
    layer_normalization = OperatorMethod(normalization.layer_normalization)
    leaky_relu = OperatorMethod(activation.leaky_relu)
    linear = OperatorMethod(activation.linear)
    lstm = OperatorMethod(recurrent.lstm)
    lstm_cell = OperatorMethod(recurrent.lstm_cell)
    matmul = OperatorMethod(matrix.matmul)
    pad = OperatorMethod(movement.pad)
    average_pool2d = OperatorMethod(pooling.average_pool2d)
    l2_pool2d = OperatorMethod(pooling.l2_pool2d)
    max_pool2d = OperatorMethod(pooling.max_pool2d)
    prelu = OperatorMethod(activation.prelu)
    reduce_l1 = OperatorMethod(reduction.reduce_l1)
    reduce_l2 = OperatorMethod(reduction.reduce_l2)
    reduce_log_sum = OperatorMethod(reduction.reduce_log_sum)
    reduce_log_sum_exp = OperatorMethod(reduction.reduce_log_sum_exp)
    reduce_max = OperatorMethod(reduction.reduce_max)
    reduce_mean = OperatorMethod(reduction.reduce_mean)
    reduce_min = OperatorMethod(reduction.reduce_min)
    reduce_product = OperatorMethod(reduction.reduce_product)
    reduce_sum = OperatorMethod(reduction.reduce_sum)
    reduce_sum_square = OperatorMethod(reduction.reduce_sum_square)
    relu = OperatorMethod(activation.relu)
    resample2d = OperatorMethod(resampling.resample2d)
    reshape = OperatorMethod(movement.reshape)
    reverse = OperatorMethod(movement.reverse)
    scatter_elements = OperatorMethod(indexing.scatter_elements)
    scatter_nd = OperatorMethod(indexing.scatter_nd)
    sigmoid = OperatorMethod(activation.sigmoid)
    slice = OperatorMethod(movement.slice_)
    softmax = OperatorMethod(activation.softmax)
    softplus = OperatorMethod(activation.softplus)
    softsign = OperatorMethod(activation.softsign)
    split = OperatorMethod(movement.split)
    tanh = OperatorMethod(activation.tanh)
    tile = OperatorMethod(movement.tile)
    transpose = OperatorMethod(movement.transpose)
    triangular = OperatorMethod(movement.triangular)
    where = OperatorMethod(logical.where)

    def append(self, operator: Operator[..., Any], /, *args: object, **kwargs: object) -> Any:
        """Add any operator, also one that is not in the specification; its own methods call this.

        Args:
            operator: the declaration.
            *args: its operands and options, as its function takes them, with operands for descriptors.
            **kwargs: the same by name, and ``label``.

        Returns:
            The operand, or the list of operands for an operator that returns one.

        Raises:
            TypeError: an argument is refused.
            InvalidStateError: the builder has built, or the context is lost.
        """
        raise NotImplementedError


class Builder(OperatorMethods):
    """The part of ``MLGraphBuilder`` that decompositions use; what they draw has no labels of its own."""

    def constant(
        self, value: MLNumber | bytes, /, *, data_type: MLOperandDataType, shape: Sequence[int] | None = None
    ) -> MLOperand:
        """Return a scalar constant, or a constant of a shape from its bytes."""
        raise NotImplementedError
