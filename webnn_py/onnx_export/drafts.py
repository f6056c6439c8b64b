"""What rules write, before it is ONNX: nodes are made once names are known."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs
from onnx import NodeProto, helper

from webnn_py.onnx_export.wire import text

INPUT: Final = NodeProto.INPUT_FIELD_NUMBER
OUTPUT: Final = NodeProto.OUTPUT_FIELD_NUMBER
NAME: Final = NodeProto.NAME_FIELD_NUMBER
DOMAIN: Final = NodeProto.DOMAIN_FIELD_NUMBER

Attributes = tuple[tuple[str, Any], ...]
"""Names and values."""


def attributes_of(given: Mapping[str, Any]) -> Attributes:
    """The attributes that are there, as they can be compared."""
    return tuple(
        [(name, tuple(value) if type(value) is list else value) for name, value in given.items() if value is not None]
    )


@attrs.frozen(eq=False)
class Draft:
    """A node, of a body or of a model.

    Attributes:
        operator: ONNX's operator, or the name of a function.
        inputs: the names of what it is given, "" for what is absent.
        outputs: those of what it makes, "" for what nobody wants.
        attributes: those that are there.
        name: what it is to be called, or "".
        domain: the operator's, "" for ONNX's own.
    """

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Attributes = ()
    name: str = ""
    domain: str = ""

    def placed(self, names: Mapping[str, str], name: str) -> "Draft":
        """The node with other names; those that are not said stay."""
        inputs = [*map(names.get, self.inputs, self.inputs)]
        return Draft(self.operator, inputs, [*map(names.get, self.outputs, self.outputs)], self.attributes, name)

    def encoded(self, name: str) -> bytes:
        """The node as a NodeProto, which is called so."""
        parts = [text(INPUT, item) for item in self.inputs]
        parts += [text(OUTPUT, item) for item in self.outputs]
        if name:
            parts.append(text(NAME, name))
        parts.append(_meaning(self.operator, self.attributes, _kinds(self.attributes)))
        if self.domain:
            parts.append(text(DOMAIN, self.domain))
        return b"".join(parts)


def _kinds(attributes: Attributes) -> tuple[object, ...]:
    """What tells values that compare equal: numbers of different types, and zeros of different signs."""
    return tuple([value.hex() if isinstance(value, float) else type(value) for _, value in attributes])


@lru_cache(1024)
def _meaning(operator: str, attributes: Attributes, kinds: tuple[object, ...]) -> bytes:
    """The fields that say what a node does: it takes long to find out of what kind an attribute is."""
    encoded: bytes = helper.make_node(operator, (), (), **dict(attributes)).SerializeToString(deterministic=True)
    return encoded
