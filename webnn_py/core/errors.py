"""The exceptions of the Web Neural Network API: the ``DOMException`` family.

The specification uses the builtin ``TypeError`` and five ``DOMException`` names, nothing else.
"""

from typing import ClassVar, final


class DOMException(Exception):  # noqa: N818 - the name is Web IDL's
    """An error of the platform, identified by its ``name`` (Web IDL, section 2.8.1)."""

    name: ClassVar[str] = "Error"

    @property
    def message(self) -> str:
        """The text of the error."""
        return str(self.args[0]) if self.args else ""


class InvalidStateError(DOMException):
    """The object is in the wrong state: destroyed, lost, or already built."""

    name = "InvalidStateError"


class UnknownError(DOMException):
    """The device failed: an allocation, a copy, or the step that should have written the data."""

    name = "UnknownError"


class OperationError(DOMException):
    """A graph could not be compiled for the device."""

    name = "OperationError"


class NotSupportedError(DOMException):
    """No such kind of context can be had here."""

    name = "NotSupportedError"


class SecurityError(DOMException):
    """The policy of this ``ML`` object denies the use of the API."""

    name = "SecurityError"


@final
class DestroyedBufferError(InvalidStateError, TypeError):
    """A destroyed buffer was read, written or dispatched.

    The specification says ``TypeError``, web-platform-tests say ``InvalidStateError``: this is both.
    """
