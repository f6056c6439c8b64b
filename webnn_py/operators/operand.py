"""``MLOperand``: the handle of a value in a graph that is not built yet."""

from typing import Self, final

from webnn_py.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.handle import Handle


@final
class MLOperand(Handle):
    """A value in a graph under construction: a graph input, a constant, or an operator's output.

    Operands are made by :class:`MLGraphBuilder` only and belong to it (section "MLOperand interface").
    """

    _made_by = "MLGraphBuilder's methods"

    __slots__ = ("__weakref__", "_descriptor")
    _descriptor: MLOperandDescriptor

    @classmethod
    def _create(cls, descriptor: MLOperandDescriptor) -> Self:
        self = cls.__new__(cls)
        self._descriptor = descriptor
        return self

    @property
    def data_type(self) -> MLOperandDataType:
        """The data type of the elements."""
        return self._descriptor.data_type

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions; empty for a scalar."""
        return self._descriptor.shape

    @property
    def rank(self) -> int:
        """The number of dimensions; 0 for a scalar."""
        return len(self._descriptor.shape)

    def __repr__(self) -> str:
        return f"<MLOperand {self._descriptor}>"
