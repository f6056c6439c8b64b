"""Hostile values of arguments: some lie about themselves, some raise, some are huge or endless."""

import itertools
import numbers
from collections.abc import Mapping
from unittest.mock import MagicMock

import numpy as np

from webnn_py import MLBuffer, MLOperand

MUCH = 1_000_000


class WillNotError(Exception):
    """The error that hostile objects raise; no method of the API may let it out."""


def _raise(*_args, **_kwargs):
    raise WillNotError("this object will not")


def _endless_repr(self):
    return repr(self)


def _object(name, base=object, **methods):
    """An object of a class with these methods, made without calling its constructor's."""
    cls = type(name, (base,), methods)
    return base.__new__(cls)


def nested(depth=2000):
    """A list in a list, and so on."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


def containing_itself():
    """A list whose repr has no end but for what Python does about it."""
    value = [1]
    value.append(value)
    return value


def _stops_in_between():
    yield 1
    raise WillNotError("no more")


def _released():
    view = memoryview(bytes(8))
    view.release()
    return view


class _Text(str):
    __slots__ = ()
    __hash__ = __eq__ = __len__ = __str__ = __repr__ = __format__ = __getitem__ = encode = isascii = _raise


class _Meta(type):
    __hash__ = __eq__ = __repr__ = _raise
    __name__ = property(_raise)


class _OfMeta(metaclass=_Meta):
    pass


class _Real(numbers.Real):
    __abs__ = __add__ = __ceil__ = __eq__ = __float__ = __floor__ = __floordiv__ = __le__ = __lt__ = __mod__ = _raise
    __mul__ = __neg__ = __pos__ = __pow__ = __radd__ = __rfloordiv__ = __rmod__ = __rmul__ = __round__ = _raise
    __rpow__ = __rtruediv__ = __truediv__ = __trunc__ = _raise
    __hash__ = object.__hash__


class _Names(Mapping):
    """A mapping that has no end of names, none of which it can show."""

    __getitem__ = __len__ = _raise

    def __iter__(self):
        return itertools.count()


class _Integer(int):
    __index__ = __int__ = __repr__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _raise
    __hash__ = int.__hash__


VALUES = {
    "an integer of 5,000 digits": lambda: 10**5000,
    "no number": lambda: float("nan"),
    "a real number that cannot be converted": _Real,
    "an integer of another mind": lambda: _Integer(3),
    "an index that raises": lambda: _object("Index", __index__=_raise),
    "a float that raises": lambda: _object("Float", float, __float__=_raise, __repr__=_raise, __eq__=_raise),
    "a list nested 2,000 deep": nested,
    "a list in itself": containing_itself,
    "a repr that raises": lambda: _object("Repr", __repr__=_raise),
    "a repr of many lines and colours": lambda: _object("Repr", __repr__=lambda _: "\n\x1b[31m\u202e" * 1000),
    "a repr of a megabyte": lambda: _object("Repr", __repr__=lambda _: "x" * MUCH),
    "a repr without end": lambda: _object("Repr", __repr__=_endless_repr),
    "an iterator that stops in between": _stops_in_between,
    "numbers without end": itertools.count,
    "a hundred thousand ones": lambda: [1] * 100_000,
    "what equals nothing": lambda: _object("Equal", __eq__=_raise, __hash__=_raise, __bool__=_raise),
    "a class that cannot be asked": lambda: _object("Asked", __class__=property(_raise)),
    "what says that it is a string": lambda: _object("Liar", __class__=property(lambda _: str)),
    "what says that it is a buffer": lambda: MagicMock(spec=MLBuffer),
    "what says that it is an operand": lambda: MagicMock(spec=MLOperand),
    "what has every method": MagicMock,
    "any attribute that raises": lambda: _object("Attributes", __getattribute__=_raise),
    "a string of another mind": lambda: _Text("float32"),
    "a string of a megabyte": lambda: "x" * MUCH,
    "half of a character": lambda: "\ud800",
    "names without end": _Names,
    "items that raise": lambda: _object("Items", dict, items=_raise, __iter__=_raise, __len__=_raise),
    "a mapping of huge names": lambda: {"x" * MUCH: 1},
    "a class that cannot be asked for its name": lambda: _OfMeta,
    "an array": lambda: np.ones(3),
    "an array of objects": lambda: np.array([_object("Repr", __repr__=_raise)], object),
    "an array of records": lambda: np.zeros(2, [("a", "f4")]),
    "an array of no memory": lambda: np.broadcast_to(np.float32(1), (2**31, 2**20)),
    "a released memoryview": _released,
    "an __array__ that raises": lambda: _object("Array", __array__=_raise),
    "an __array_interface__ of none": lambda: _object("Array", __array_interface__=5),
    "a __dlpack__ that raises": lambda: _object("Array", __dlpack__=_raise, __dlpack_device__=lambda _: (1, 0)),
    "a __dlpack__ of none": lambda: _object(
        "Array", __dlpack__=lambda *_a, **_k: 5, __dlpack_device__=lambda _: (1, 0)
    ),
    "a __buffer__ that raises": lambda: _object("Buffer", __buffer__=_raise),
    "None": lambda: None,
    "True": lambda: True,
}
"""By name, what makes each anew."""
