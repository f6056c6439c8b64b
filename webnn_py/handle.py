"""Objects that only the library makes."""

from typing import ClassVar, NoReturn


class Handle:
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
        """What the repr says behind the class's name: short, and without touching a device."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} can be neither copied nor pickled: it stands for something elsewhere")
