"""The exceptions of the Web Neural Network API: the ``DOMException`` family."""

from webnn_py.core.errors import (
    DestroyedBufferError,
    DOMException,
    InvalidStateError,
    NotFoundError,
    NotSupportedError,
    OperationError,
    QuotaExceededError,
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
