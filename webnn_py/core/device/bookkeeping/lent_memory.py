"""Steps that wait for memory that a user's own work has borrowed."""

from collections.abc import Awaitable, Callable, Iterable

from webnn_py.core.device.backend import Storage
from webnn_py.core.in_flight import done

Step = Callable[[], Awaitable[None] | None]
"""A step of a device: done when it returns None, else when the returned awaitable has finished."""


async def after_return(storages: Iterable[Storage], step: Step) -> None:
    """Wait until lent memory has been returned, then take the step."""
    for storage in storages:
        if storage.lent is not None:
            await storage.lent.wait()
    await done(step())
