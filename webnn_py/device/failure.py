"""``Failure``: why a buffer on a device holds no data."""

from typing import final

from webnn_py.unreported_errors import Line, UnreportedError


@final
class Failure:
    """A step that failed, for all buffers that it should have written, and for those computed from them.

    Whoever reads one of them is told. When all have been released or overwritten before, a warning tells it, unless all
    were overwritten: nobody has missed what they held.
    """

    __slots__ = ("_unreported", "text")

    def __init__(self, text: str, unreported: UnreportedError) -> None:
        self.text = text
        self._unreported = unreported

    @classmethod
    def of(cls, text: str, line: Line | None = None) -> "Failure":
        """The failure of a step.

        Args:
            text: the method, and what went wrong.
            line: of the method's call, if that is known.
        """
        words = f"{text}; nobody was told, since nothing that it should have written was read"
        return cls(text, UnreportedError(words, line, is_missed=False))

    def follow(self, text: str) -> "Failure":
        """Return a failure that follows from it, with another text."""
        return Failure(text, self._unreported)

    def tell(self) -> None:
        """Note that the failure was reported."""
        self._unreported.tell()

    def miss(self) -> None:
        """A buffer that has failed is released."""
        self._unreported.is_missed = True

    def __str__(self) -> str:
        return self.text
