"""Feeds and fetches: what a run reads and writes, checked before anything is enqueued."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

import attrs
import numpy as np

from webnn_py.core.descriptors import BYTES_PER_ELEMENT, MLOperandDescriptor
from webnn_py.core.device.backend import HostArray
from webnn_py.core.message_text import shown
from webnn_py.runtime.contexts import OpenContext
from webnn_py.runtime.records import TensorDescriptor
from webnn_py.runtime.tensor import Tensor, host_array, usable_tensor

Feed = HostArray | Tensor
"""The value for an input: an array, or a tensor on the device."""

_DTYPES: Final[Mapping[str, np.dtype[Any]]] = {name: np.dtype(name) for name in BYTES_PER_ELEMENT}


@final
class ExpectedInputs:
    """The inputs that feeds must have, and the sizes that their names stand for.

    Args:
        descriptors: the inputs by name; a string among the dimensions is bound by the feeds.
        bound: the sizes of symbolic dimensions that are known already.

    Attributes:
        descriptors: the inputs by name.
        open: those whose shapes the feeds decide.
    """

    def __init__(self, descriptors: Mapping[str, TensorDescriptor], bound: Mapping[str, int]) -> None:
        self.descriptors = descriptors
        self._bound = dict(bound)
        self._dtypes = {name: _DTYPES.get(item.data_type) for name, item in descriptors.items()}
        self.open = {name: item for name, item in descriptors.items() if not item.is_fixed}
        self._shapes = {name: item.shape for name, item in descriptors.items()}

    def checked(self, feeds: object) -> dict[str, Feed]:
        """Return the feeds by name: arrays, and tensors on the device, of the right data types and shapes.

        Raises:
            TypeError: a name, a data type or a shape is not the model's.
            InvalidStateError: a tensor was disposed of.
        """
        if not isinstance(feeds, Mapping):
            raise TypeError(f"run(): feeds is {type(feeds).__name__}; it must be a mapping of names to arrays, tensors")
        if feeds.keys() != self._shapes.keys():
            raise TypeError(f"run(): feeds has {shown(list(feeds))}; the inputs are {list(self._shapes)}")
        checked: dict[str, Feed] = {}
        for name, shape in self._shapes.items():
            value = feeds[name]
            if isinstance(value, np.ndarray):
                if value.dtype is not self._dtypes[name]:
                    value = self._of_data_type(name, value)
                if value.shape != shape and name not in self.open:
                    raise _wrong(f"input {name!r}", f"of shape {list(value.shape)}", str(self.descriptors[name]))
                checked[name] = value
            else:
                checked[name] = self._tensor(name, value)
        return checked

    def _of_data_type(self, name: str, value: HostArray) -> HostArray:
        wanted = self._dtypes[name]
        if wanted is None:
            return value  # a type that WebNN lacks: the model was converted, so nothing needs this input
        array = host_array(f"run(): input {name!r}", value)
        if array.dtype != wanted:
            raise _wrong(f"input {name!r}", str(value.dtype), str(self.descriptors[name]))
        return array

    def _tensor(self, name: str, value: object) -> Feed:
        descriptor = self.descriptors[name]
        tensor = usable_tensor(f"run(): input {name!r}", value, "a numpy array or a Tensor")
        if tensor.data_type != descriptor.data_type or (name not in self.open and tensor.dims != descriptor.shape):
            raise _wrong(f"input {name!r}", f"{tensor.data_type} {list(tensor.dims)}", str(descriptor))
        return tensor.data if tensor.location == "cpu" else tensor

    def shapes_of(self, feeds: Mapping[str, Feed]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs that the model leaves open.

        Raises:
            TypeError: a rank or a size is not the model's, or one name stands for two sizes.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        bound = {size: (value, "the session") for size, value in self._bound.items()} if self.open else {}
        for name, descriptor in self.open.items():
            feed = feeds[name]
            shape = feed.dims if isinstance(feed, Tensor) else feed.shape
            shapes[name] = shape
            if descriptor.shape is None:
                continue
            if len(shape) != len(descriptor.shape):
                raise _wrong(f"input {name!r}", f"of shape {list(shape)}", str(descriptor))
            for size, value in zip(descriptor.shape, shape, strict=True):
                if isinstance(size, int):
                    if size != value:
                        raise _wrong(f"input {name!r}", f"of shape {list(shape)}", str(descriptor))
                elif size != "?":
                    known, by = bound.setdefault(size, (value, f"input {name!r}"))
                    if known != value:
                        raise TypeError(
                            f"run(): input {name!r} is of shape {list(shape)}; it must be {descriptor}, and {size!r} "
                            f"is {known} by {by}"
                        )
        return shapes


@attrs.frozen
class Fetches:
    """The outputs that a run returns.

    Attributes:
        names: the outputs that are handed out, in order.
        targets: where those go that have a place: arrays on the host, tensors on the device.
        tensors: the tensors that were given, by name.
    """

    names: tuple[str, ...]
    targets: Mapping[str, Feed] = attrs.field(factory=dict)
    tensors: Mapping[str, Tensor] = attrs.field(factory=dict)


def checked_fetches(fetches: object, everything: Fetches) -> Fetches:
    """Convert the argument ``fetches`` of a run; shapes are checked when they are known.

    Args:
        fetches: None for all outputs, a list of names, or a mapping of names to where they go.
        everything: all outputs.

    Raises:
        TypeError: an output has no such name, is named twice, or its place is no array or tensor.
        InvalidStateError: a tensor was disposed of.
    """
    if fetches is None:
        return everything
    if isinstance(fetches, (str, bytes, Tensor)) or not isinstance(fetches, Iterable):
        raise TypeError(
            f"run(): fetches is {type(fetches).__name__}; it must be a list of outputs' names, or a mapping of them to "
            "arrays, tensors or None"
        )
    known = everything.names
    names = tuple(fetches)
    for name in names:
        if name not in known:
            raise TypeError(f"run(): fetches has {shown(name)}; the outputs are {list(known)}")
    if not isinstance(fetches, Mapping):
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise TypeError(f"run(): fetches has {shown(twice)} twice")
        return Fetches(names)
    targets: dict[str, Feed] = {}
    tensors: dict[str, Tensor] = {}
    for name, target in fetches.items():
        if isinstance(target, Tensor):
            tensors[name] = target
        if target is not None:
            targets[name] = _target(name, target)
    return Fetches(known, targets, tensors)


def _target(name: str, target: object) -> Feed:
    if isinstance(target, Tensor) and target._hold is not None and not target._disposed:
        return target
    what = f"run(): output {name!r}"
    if isinstance(target, np.ndarray):
        return host_array(what, target)
    tensor = usable_tensor(what, target, "a numpy array, a Tensor or None")
    return tensor.data if tensor.location == "cpu" else tensor


def check_targets(targets: Mapping[str, Feed], descriptors: Mapping[str, MLOperandDescriptor]) -> None:
    """Check where outputs go, now that their shapes are known.

    Raises:
        TypeError: a data type or a shape is not the output's, or an array cannot be written.
    """
    for name, target in targets.items():
        descriptor = descriptors[name]
        if isinstance(target, Tensor):
            if target._descriptor != descriptor:
                raise _wrong(f"output {name!r}", str(target._descriptor), str(descriptor))
            continue
        if target.dtype != _DTYPES[descriptor.data_type] or target.shape != descriptor.shape:
            raise _wrong(f"output {name!r}", f"{target.dtype} {list(target.shape)}", str(descriptor))
        if not target.flags.writeable or not target.flags.c_contiguous:
            flaw = "not contiguous" if target.flags.writeable else "read-only"
            raise _wrong(f"output {name!r}", f"an array that is {flaw}", "writable and C-contiguous")


def check_distinct(feeds: Mapping[str, Feed], targets: Mapping[str, Feed], in_place: Mapping[str, str]) -> None:
    """Refuse overlapping memory; only arrays that are read, and what is updated in place, may be given twice.

    Args:
        feeds: the inputs.
        targets: where outputs go.
        in_place: the outputs that may be in the tensor of an input, by name.

    Raises:
        TypeError: a tensor is given twice, or an output overlaps something else.
    """
    tensors: dict[int, str] = {}
    arrays: list[tuple[str, HostArray]] = []
    for kind, places in (("input", feeds), ("output", targets)):
        for name, place in places.items():
            if isinstance(place, Tensor):
                if kind == "output" and name in in_place and feeds.get(in_place[name]) is place:
                    continue
                other = tensors.setdefault(place._identity, f"{kind} {name!r}")
                if other != f"{kind} {name!r}":
                    raise TypeError(f"run(): {kind} {name!r} is the same tensor as {other}; each needs one of its own")
            elif targets:
                if kind == "output":
                    for other, array in arrays:
                        if np.may_share_memory(place, array):
                            raise TypeError(f"run(): output {name!r} overlaps {other}; each needs memory of its own")
                arrays.append((f"{kind} {name!r}", place))


def check_places(what: str, places: Mapping[str, Feed], opened: OpenContext) -> None:
    """Refuse tensors that were disposed of, or of another device; a user's own GPU buffers become the device's.

    Raises:
        InvalidStateError: one was disposed of, or its device was lost.
        TypeError: one is elsewhere.
        NotSupportedError: one is a GPU buffer, and the device has none.
    """
    for name, place in places.items():
        if isinstance(place, Tensor):
            place._buffer_on(opened, "run", f"{what} {name!r}")


def _wrong(what: str, given: str, allowed: str) -> TypeError:
    return TypeError(f"run(): {what} is {given}; it must be {allowed}")
