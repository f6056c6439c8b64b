"""Steps that wait for memory that is lent to a user, and contents that come back from another device."""

from collections.abc import Awaitable, Callable, Iterable
from typing import final

import trio

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.in_flight import done

Step = Callable[[], Awaitable[None] | None]
"""A step of a device: done when it returns None, else when the returned awaitable has finished."""


async def after_return(storages: Iterable[Storage], step: Step) -> None:
    """Wait until lent memory has been returned, then take the step."""
    for storage in storages:
        if storage.lent is not None:
            await storage.lent.wait()
    await done(step())


@final
class Arrival:
    """Contents of a buffer that are on their way back from another device.

    Attributes:
        descriptor: the data type and shape of the buffer.
        event: set when they have come, or will not come.
        data: the contents; None until they have come.
        failure: the reason why they will not come; None if there is none.
    """

    __slots__ = ("__weakref__", "data", "descriptor", "event", "failure")

    def __init__(self, descriptor: MLOperandDescriptor) -> None:
        self.descriptor = descriptor
        self.event = trio.Event()
        self.data: HostArray | None = None
        self.failure: str | None = None

    def come(self, data: HostArray) -> None:
        """Deliver the contents, of the buffer's data type and shape."""
        self.data = data
        self.event.set()

    def fail(self, reason: str) -> None:
        """Report that the contents are lost."""
        self.failure = reason
        self.event.set()
