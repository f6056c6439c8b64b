"""Array protocols of tensors: numpy computes with those whose elements are in the host's memory."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from webnn_py.core.device.backend import HostArray


class ArrayProtocols(NDArrayOperatorsMixin):
    """Conversions, operators, indexing and iteration through numpy: a mixin of the tensors.

    Each raises ``TypeError`` for a tensor on the device, whose message names the call that brings its elements to the
    host, and ``InvalidStateError`` for one that was disposed of. Results share the tensor's memory wherever numpy's do,
    and keep it alive after :meth:`dispose`.
    """

    __slots__ = ()

    def _elements(self, method: str) -> HostArray:
        """Return the array of a tensor on the host."""
        raise NotImplementedError

    def numpy(self) -> HostArray:
        """Return the array of a tensor on the host, which shares its memory.

        Raises:
            TypeError: it is on the device.
            InvalidStateError: it was disposed of.
        """
        return self._elements("numpy()")

    # --- conversions: numpy's protocols, DLPack's, Python's --------------------------------------------------

    def __array__(self, dtype: np.dtype[Any] | None = None, *, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._elements("__array__()"), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._elements("__dlpack__()").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self._elements("__dlpack_device__()").__dlpack_device__()

    def __bool__(self) -> bool:
        return bool(self._elements("bool()"))

    def __float__(self) -> float:
        return float(self._only_element("float()"))

    def __int__(self) -> int:
        return int(self._only_element("int()"))

    def __complex__(self) -> complex:
        return complex(self._only_element("complex()"))

    def __index__(self) -> int:
        return operator.index(self._elements("index()"))

    def _only_element(self, method: str) -> Any:
        """The element of a tensor of one, as Python's number; numpy deprecates ``float()`` of arrays with a rank."""
        elements = self._elements(method)
        if elements.size != 1:
            raise TypeError(f"{method}: {self!r} has {elements.size} elements; it must have one")
        return elements.item()

    # --- a sequence ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._elements("len()"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements("iter()"))

    def __getitem__(self, key: Any) -> Any:
        return self._elements("indexing")[key]

    def __contains__(self, item: object) -> bool:
        return item in self._elements("in")

    # --- operators -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [
            item._elements(f"{ufunc.__name__}()") if isinstance(item, ArrayProtocols) else item for item in inputs
        ]
        for target in options.get("out", ()):
            if isinstance(target, ArrayProtocols):
                raise TypeError(
                    f"{ufunc.__name__}(): out is {target!r}; it must be an array, such as the tensor's data"
                )
        return getattr(ufunc, method)(*arrays, **options)

    __hash__ = object.__hash__  # tensors are keys by their identity, though == compares elements
