"""``Failure``: the reason why a buffer on a device holds no data."""

from typing import final

from webnn_py.core.unreported_errors import Line, UnreportedError


@final
class Failure:
    """The failure of a step, shared by all buffers that it should have written, and those computed from them.

    Reading one of the buffers reports it. If all buffers have been released or overwritten before, a warning reports
    it, unless all were overwritten: then their contents were not missed.
    """

    __slots__ = ("_unreported", "text")

    def __init__(self, text: str, unreported: UnreportedError) -> None:
        self.text = text
        self._unreported = unreported

    @classmethod
    def from_text(cls, text: str, line: Line | None = None) -> "Failure":
        """Return the failure of a step.

        Args:
            text: the method, and the reason.
            line: the line of the method's call, if known.
        """
        words = f"{text}; this was not reported, since nothing that it should have written was read"
        return cls(text, UnreportedError(words, line, is_missed=False))

    def follow(self, text: str) -> "Failure":
        """Return a failure that is a consequence of this one, with another text."""
        return Failure(text, self._unreported)

    def mark_reported(self) -> None:
        """Mark the failure as reported."""
        self._unreported.mark_reported()

    def miss(self) -> None:
        """Note that a buffer with this failure is released."""
        self._unreported.is_missed = True

    def __str__(self) -> str:
        return self.text
