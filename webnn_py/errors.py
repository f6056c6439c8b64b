"""The exceptions of the Web Neural Network API: the ``DOMException`` family, and two of saved graphs."""

from collections.abc import Iterator

from webnn_py.core.errors import (
    DestroyedBufferError,
    DOMException,
    InvalidStateError,
    NotSupportedError,
    OperationError,
    SecurityError,
    UnknownError,
)

__all__ = [
    "DOMException",
    "DestroyedBufferError",
    "InvalidStateError",
    "NotFoundError",
    "NotSupportedError",
    "OperationError",
    "QuotaExceededError",
    "SecurityError",
    "UnknownError",
]


class NotFoundError(DOMException):
    """There is no saved graph that can be loaded: never saved, gone, damaged, or another device's."""

    name = "NotFoundError"


class QuotaExceededError(DOMException):
    """A graph needs more bytes than its folder may have."""

    name = "QuotaExceededError"


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group, however deep; of any other, itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
