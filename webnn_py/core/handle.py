"""Objects that only the library makes."""

from typing import TYPE_CHECKING, ClassVar, NoReturn, cast


def forgotten_await(value: object) -> str:
    """Return a hint for the refusal of ``value`` if it is a promise, whose result was meant; else ""."""
    if not issubclass(type(value), Promised):  # not isinstance(): an object may misreport its class
        return ""
    return f"; {cast('Promised', value)._named()} is a promise: forgot await?"


class NotCopied:
    """Refuses to be copied or pickled, since it stands for something elsewhere. A mixin."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} can be neither copied nor pickled: it stands for something elsewhere")


class Handle(NotCopied):
    """Stands for something that the library keeps: it is neither made, copied nor pickled by a script."""

    __slots__ = ()
    _made_by: ClassVar[str] = "the library's own methods"

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(f"{type(self).__name__} has no public constructor; use {self._made_by}")

    def __repr__(self) -> str:
        try:
            return f"<{type(self).__name__} {self._described()}>"
        except AttributeError:  # a debugger shows it while the constructor refuses, or before it is complete
            return f"<{type(self).__name__} incomplete>"

    def _described(self) -> str:
        """Return the text of the repr behind the class's name: short, and without access to a device."""
        raise NotImplementedError


class NoArray:
    """Refuses to be taken for an array, of which numpy would make an array of one object without a word. A mixin."""

    __slots__ = ()
    _elements_come_by: ClassVar[str]
    """The call that gives an array instead, in words."""

    if not TYPE_CHECKING:  # type checkers know what is missing

        def _refuse(self, *arguments: object, **options: object) -> NoReturn:
            raise TypeError(f"{self!r} is no array: {self._elements_come_by}")

        # Without __iter__, which would make it an Iterable: Python iterates by __getitem__, too.
        __array__ = __dlpack__ = __dlpack_device__ = __getitem__ = _refuse


class Promised(Handle):
    """Stands for an answer that has to be awaited, and says so to who takes it for the answer."""

    __slots__ = ()

    def _named(self) -> str:
        """Return the call that is answered."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # type checkers know what is missing

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(f"{self._named()} is a promise: forgot await? It has no attribute {name!r}")

        def _refuse(self, *arguments: object, **options: object) -> NoReturn:
            raise TypeError(f"{self._named()} is a promise: forgot await?")

        __array__ = __dlpack__ = __dlpack_device__ = __float__ = __int__ = _refuse
        __call__ = __getitem__ = __iter__ = __len__ = _refuse
        __enter__ = __exit__ = __aenter__ = __aexit__ = _refuse
