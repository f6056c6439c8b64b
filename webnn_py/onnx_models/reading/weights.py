"""A model's weights: read once, never written, and identified by their bytes.

All conversions of a model share them, so that graphs for other shapes, and other sessions, find on the device what is
there already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, final

from onnx import GraphProto, TensorProto

from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.devices.content_keys import ContentKey
from webnn_py.onnx_export.body import name_of
from webnn_py.onnx_models.conversion.context import StaticValue, read_only
from webnn_py.onnx_models.reading.tensors import tensor_array

LARGEST_UNSHARED: Final = 4096
"""Values of at most this many bytes get no key."""


@final
class Weights:
    """The initializers of a model's graph.

    They are read when they are first asked for, and the model's own bytes of large ones are dropped then.

    Args:
        raw_data: the raw data of some, by name.
    """

    def __init__(self, raw_data: Mapping[str, bytes]) -> None:
        self._raw_data = dict(raw_data)
        self._values: dict[str, StaticValue] = {}
        self._keys: dict[int, tuple[StaticValue, ContentKey]] = {}

    def read(self, graph: GraphProto, names: set[str]) -> None:
        """Read the initializers of these names."""
        for tensor in graph.initializer:
            if tensor.name in names:
                self.value(tensor)

    def value(self, tensor: TensorProto) -> StaticValue:
        """Return the values of an initializer, read-only.

        Raises:
            InvalidModelError: it cannot be read.
        """
        known = self._values.get(tensor.name)
        if known is not None:
            return known
        value = self._values[tensor.name] = read_only(tensor_array(tensor, self._raw_data.pop(tensor.name, None)))
        if value.nbytes > LARGEST_UNSHARED and name_of(value.dtype) in DATA_TYPES:
            self._keys[id(value)] = (value, ContentKey(value))
            tensor.ClearField("raw_data")
        return value

    def identities(self, graph: GraphProto, names: set[str]) -> Iterator[bytes]:
        """Yield bytes that differ for different initializers of these names: their contents, of large ones a digest."""
        for tensor in graph.initializer:
            if tensor.name in names:
                known = self._keys.get(id(self.value(tensor)))  # then the tensor's own bytes have been dropped
                yield tensor.SerializeToString(deterministic=True) + (b"" if known is None else known[1].digest)

    def key(self, value: StaticValue) -> ContentKey | None:
        """Return the key of a static value, if it is large enough to be kept once on the device."""
        known = self._keys.get(id(value))
        if known is not None:
            return known[1]
        if value.nbytes <= LARGEST_UNSHARED or name_of(value.dtype) not in DATA_TYPES:
            return None
        return ContentKey(read_only(value))
