"""``MLOperand``: the handle of a value in a graph that is not built yet."""

from typing import Any, Self, final
from weakref import ref

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.handle import Handle, NoArray
from webnn_py.core.message_text import shortened, shown


@final
class MLOperand(NoArray, Handle):
    """A value in a graph under construction: a graph input, a constant, or an operator's output.

    Operands are made by :class:`MLGraphBuilder` only and belong to it (section "MLOperand interface").
    """

    _made_by = "MLGraphBuilder's methods"
    _elements_come_by = "it has elements when its graph is built and dispatched, in the buffer of an output"

    __slots__ = ("__weakref__", "_builder", "_descriptor", "_name", "_origin")
    _builder: ref[Any] | None
    _descriptor: MLOperandDescriptor
    _origin: str
    _name: str

    @classmethod
    def from_descriptor(cls, descriptor: MLOperandDescriptor, origin: str = "", name: str = "") -> Self:
        """Return the handle of a value, for builders. Not in the specification.

        Args:
            descriptor: the value's data type and shape.
            origin: "input", "constant" or an operator's method, for its text.
            name: the name or label, for its text.
        """
        self = cls.__new__(cls)
        self._descriptor = descriptor
        self._origin = origin
        self._name = name
        self._builder = None
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

    @property
    def builder(self) -> object:
        """The builder that it belongs to; None if that is gone. Not in the specification."""
        return None if self._builder is None else self._builder()

    def _described(self) -> str:
        name = shortened(shown(self._name)) if self._name else ""
        return " ".join(filter(None, (self._origin, name, str(self._descriptor))))
