"""Scopes of nodes while a model is converted: values by name, operator sets, the attributes of a call."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Generator, Mapping
from enum import Enum
from typing import Final, Literal, TypeVar

import attrs
import numpy as np
from onnx import AttributeProto

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import Value
from webnn_py.onnx_models.problems import InvalidModelError, worded
from webnn_py.onnx_models.reading.functions import Functions


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""A value that could not be converted: its node is among the problems, or needs another missing value."""


@attrs.frozen
class TensorSequence:
    """A sequence of tensors."""

    items: tuple[Value, ...]


@attrs.frozen
class ShortIntegers:
    """Integers of 16 bits that are computed when the graph runs.

    Attributes:
        operand: the same numbers as int32, which WebNN has.
        data_type: "int16" or "uint16".
    """

    operand: MLOperand
    data_type: str


Converted = Value | TensorSequence | ShortIntegers | Literal[_Missing.MISSING] | None
"""A value, or none where a function's input is absent at its call."""

Scope = ChainMap[str, Converted]

ResultT = TypeVar("ResultT")
Steps = Generator[None, None, ResultT]
"""Something that is done in steps, between which other things may be done."""


@attrs.frozen
class Surroundings:
    """The surroundings of nodes of the model's graph, of an inner graph, or of a function's body at one call.

    Attributes:
        scope: values by name.
        opsets: the version of each operator set, by domain.
        functions: the model's own functions, by name, which come before ONNX's operators; none in the body of an
            operator that ONNX defines by a function.
        attributes: what attributes of the nodes may refer to: the call's, in a function's body.
        prefix: what stands before the nodes' names in messages and labels: the call's name, in a function's body.
        is_repeated: whether the nodes may be converted several times, as those of a loop's body.
        is_once: whether they are converted once at most: those of the model's graph, and of branches in it.
    """

    scope: Scope
    opsets: Mapping[str, int]
    functions: Functions
    attributes: Mapping[str, AttributeProto] = attrs.field(factory=dict)
    prefix: str = ""
    is_repeated: bool = False
    is_once: bool = False

    def of_inner_graph(self, own: Mapping[str, Converted], prefix: str, *, is_branch: bool) -> Surroundings:
        """Return the surroundings of nodes of an inner graph, which has values of its own in addition."""
        return attrs.evolve(
            self,
            scope=self.scope.new_child(dict(own)),
            prefix=prefix,
            is_repeated=self.is_repeated or not is_branch,
            is_once=self.is_once and is_branch,
        )


def tensor_of(value: Converted) -> Value:
    """Return a value that must be a tensor.

    Raises:
        Refused: it is absent, a sequence, or of integers of 16 bits that are not known.
    """
    if isinstance(value, (MLOperand, np.ndarray)):
        return value
    if isinstance(value, ShortIntegers):
        raise Refused(
            f"an input is {value.data_type}, which WebNN lacks, and computed when the graph runs; only "
            "DequantizeLinear and operators that move elements take it"
        )
    if isinstance(value, TensorSequence):
        raise Refused("a sequence of tensors stands where a tensor is needed")
    raise Refused("a tensor that is needed is absent")


def looked_up(scope: Scope, name: str, kind: str, user: str) -> Converted:
    """Return the value of a name that a node, an output or a function uses.

    Raises:
        InvalidModelError: there is none.
    """
    for values in scope.maps:  # as the ChainMap itself does, without a call for each map
        if name in values:
            return values[name]
    raise InvalidModelError(f"the model is broken: {kind} {worded(user)} uses {worded(name)}, which nothing computes")
