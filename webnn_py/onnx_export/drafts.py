"""What rules write, before it is ONNX: a node is made once its names are known, and attributes only once each."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, TensorProto, helper


@attrs.frozen(eq=False)
class Draft:
    """A node of a body.

    Attributes:
        operator: ONNX's operator.
        inputs: the names in the body of what it is given, "" for what is absent.
        outputs: those of what it makes, "" for what nobody wants.
        attributes: those that are there.
    """

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]

    def node(self, names: Mapping[str, str], label: str) -> NodeProto:
        """The node with other names; those that are not said stay."""
        node = NodeProto(
            op_type=self.operator,
            name=label,
            input=[names.get(name, name) for name in self.inputs],
            output=[names.get(name, name) for name in self.outputs],
        )
        if self.attributes:
            node.attribute.extend(
                [_attribute(name, _hashable(value)) for name, value in sorted(self.attributes.items())]
            )
        return node


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(1024, typed=True)
def _attribute(name: str, value: Any) -> AttributeProto:
    """An attribute, which a node gets a copy of."""
    return helper.make_attribute(name, value)


def tensor_proto(name: str, element_type: int, array: NDArray[Any]) -> TensorProto:
    """An array with its bytes, in the order of bytes that ONNX has."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return TensorProto(name=name, data_type=element_type, dims=array.shape, raw_data=little.tobytes())


def names_only(name: str, element_type: int, array: NDArray[np.generic]) -> TensorProto:
    """An array whose bytes lie elsewhere."""
    tensor = TensorProto(name=name, data_type=element_type, dims=array.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", "0"), ("length", str(array.nbytes))):
        tensor.external_data.add(key=key, value=value)
    return tensor
