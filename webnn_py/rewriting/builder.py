"""The builder with which rules and passes draw nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webnn_py.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.graph import Constant, Node, Value
from webnn_py.operators.casting import cast_number
from webnn_py.operators.declaration import Operator, of_operands
from webnn_py.operators.fused import FUSED
from webnn_py.operators.idl import MLNumber
from webnn_py.operators.methods import Builder
from webnn_py.operators.operand import MLOperand


class RewriteBuilder(Builder):
    """A builder below the script's layer, whose operands stand for values of the graph.

    It has the methods of ``MLGraphBuilder`` that draw operators, and those of ``operators.fused``.

    Args:
        label: the label of every node that is built without one.
        drawn: the places of the operators that all nodes compute.
    """

    def __init__(self, label: str = "", drawn: tuple[int, ...] = ()) -> None:
        self._label = label
        self._drawn = drawn
        self._values: dict[MLOperand, Value] = {}

    def operand(self, value: Value) -> MLOperand:
        """Return an operand that stands for a value."""
        operand = MLOperand.of(value.descriptor)
        self._values[operand] = value
        return operand

    def value(self, operand: MLOperand) -> Value:
        """Return the value that an operand stands for."""
        return self._values[operand]

    def constant(
        self, value: MLNumber | bytes, /, *, data_type: MLOperandDataType, shape: Sequence[int] | None = None
    ) -> MLOperand:
        """Return a scalar constant, or a constant of a shape from its bytes."""
        if isinstance(value, bytes):
            data = np.frombuffer(value, data_type).reshape(shape or ())
        else:
            data = np.array(cast_number(value, data_type), data_type)
        return self.operand(Constant(MLOperandDescriptor(data_type, data.shape), data))

    def draw(self, node: Node) -> Sequence[Value]:
        """Return the values of a node's outputs."""
        return node.results

    def append(self, operator: Operator[..., Any], /, *args: object, **kwargs: object) -> Any:
        """Add one operator, as ``MLGraphBuilder.append()`` does; operands are not checked against limits."""
        arguments = operator.bind(args, kwargs)
        outputs = tuple(operator.infer(arguments))
        values = of_operands(arguments.operands, self.value)
        node = Node(operator, values, arguments.options(), outputs, arguments.label or self._label, self._drawn)
        operands = [self.operand(value) for value in self.draw(node)]
        return operands if operator.returns_sequence else operands[0]

    def __getattr__(self, name: str) -> Any:
        if name not in FUSED:
            raise AttributeError(name)
        return lambda *args, **kwargs: self.append(FUSED[name], *args, **kwargs)
