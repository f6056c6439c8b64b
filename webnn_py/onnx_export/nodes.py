"""ONNX nodes as rules write them; ``NodeProto`` messages are copied from templates once all names are known."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper

from webnn_py.core.frozen import frozen
from webnn_py.core.message_text import in_brackets

MICROSOFT: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""

CLASSICAL: Final = "ai.onnx.ml"
"""The domain of ONNX's operators of classical machine learning."""

Attributes = tuple[tuple[str, Any], ...]
"""Names and values."""


def attributes_of(given: Mapping[str, Any]) -> Attributes:
    """Return the attributes that are there, as they can be compared."""
    return tuple(
        [(name, tuple(value) if type(value) is list else value) for name, value in given.items() if value is not None]
    )


@attrs.frozen(eq=False)
class Within:
    """The graph that a node has in it, as its attribute ``body``.

    Attributes:
        graph: the graph.
        reads: the names of what it reads from around it.
        operators: those of its nodes.
    """

    graph: GraphProto
    reads: frozenset[str]
    operators: frozenset[str]


@frozen(eq=False)
class OnnxNode:
    """A node of a body or of a model.

    Attributes:
        operator: ONNX's operator, or the name of a function.
        inputs: the names of its inputs, "" for absent ones.
        outputs: the names of its outputs, "" for unused ones.
        attributes: those that are there.
        name: what it is to be called, or "".
        domain: the operator's, "" for ONNX's own.
        within: the graph in it, if it has one.
        lists: further attributes, by name: long lists of integers, floats or bytes.
    """

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Attributes = ()
    name: str = ""
    domain: str = ""
    within: Within | None = None
    lists: Mapping[str, NDArray[Any]] | None = None

    def placed(self, names: Mapping[str, str], name: str) -> "OnnxNode":
        """Return the node with other names; names that are not given, and those within, stay."""
        inputs, outputs = ([*map(names.get, given, given)] for given in (self.inputs, self.outputs))
        return OnnxNode(self.operator, inputs, outputs, self.attributes, name, self.domain, self.within, self.lists)

    def reading(self, inputs: Sequence[str]) -> "OnnxNode":
        """Return the node with other inputs; what is read within stays."""
        given = self.operator, inputs, self.outputs, self.attributes, self.name, self.domain, self.within, self.lists
        return OnnxNode(*given)

    @property
    def place(self) -> str:
        """The name in reports: the operator, and the label of what it was written for."""
        return f"{self.operator}{in_brackets(self.name)}"

    @property
    def read(self) -> Iterable[str]:
        """The names of what it reads, also within."""
        return self.inputs if self.within is None else (*self.inputs, *self.within.reads)

    def computes_as(self, other: "OnnxNode") -> bool:
        """Return whether another node of the same operator and inputs makes the same outputs."""
        if (self.domain, self.attributes, self.within) != (other.domain, other.attributes, other.within):
            return False
        if self.lists is not other.lists:
            return False
        have_same = [*map(bool, self.outputs)] == [*map(bool, other.outputs)]
        return have_same and _kinds(self.attributes) == _kinds(other.attributes)

    def write(self, node: NodeProto, name: str) -> None:
        """Write it into an empty node, which is called so."""
        if self.attributes:
            node.CopyFrom(_template(self.operator, self.attributes, _kinds(self.attributes)))
        else:
            node.op_type = self.operator
        if self.within is not None:
            attribute = node.attribute.add()
            attribute.name, attribute.type = "body", AttributeProto.GRAPH
            attribute.g.CopyFrom(self.within.graph)
        for list_name, array in (self.lists or {}).items():
            attribute = node.attribute.add()
            attribute.name = list_name
            attribute.type, elements = {
                "f": (AttributeProto.FLOATS, attribute.floats),
                "S": (AttributeProto.STRINGS, attribute.strings),
            }.get(array.dtype.kind, (AttributeProto.INTS, attribute.ints))
            elements.extend(array.tolist())
        if name:
            node.name = name
        if self.domain:
            node.domain = self.domain
        node.input.extend(self.inputs)
        node.output.extend(self.outputs)


def _kinds(attributes: Attributes) -> tuple[object, ...]:
    """Return what distinguishes values that compare equal: types of numbers, and signs of zeros."""
    return tuple([value.hex() if isinstance(value, float) else type(value) for _, value in attributes])


@lru_cache(1024)
def _template(operator: str, attributes: Attributes, kinds: tuple[object, ...]) -> NodeProto:
    """Return a node without names to copy: making an attribute takes as long as all else of a node."""
    return helper.make_node(operator, (), (), **dict(attributes))


def write_tensor(tensor: TensorProto, name: str, element_type: int, array: NDArray[Any]) -> None:
    """Write an array into an empty tensor with its bytes, in the order of bytes that ONNX has."""
    _describe(tensor, name, element_type, array)
    # Asked first: another data type takes long to make.
    is_in_order = sys.byteorder == "little" and array.dtype.isnative
    tensor.raw_data = (array if is_in_order else array.astype(array.dtype.newbyteorder("<"))).tobytes()


def write_name(tensor: TensorProto, name: str, element_type: int, array: NDArray[np.generic]) -> None:
    """Describe an array in an empty tensor, as external data."""
    _describe(tensor, name, element_type, array)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", name), ("offset", "0"), ("length", str(array.nbytes))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def _describe(tensor: TensorProto, name: str, element_type: int, array: NDArray[Any]) -> None:
    # One by one: as arguments of a constructor they take five times as long.
    tensor.name, tensor.data_type = name, element_type
    tensor.dims.extend(array.shape)
