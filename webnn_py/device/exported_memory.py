"""Waiting for memory that is lent to a user."""

from collections.abc import Awaitable, Callable, Iterable

from webnn_py.device.backend import Storage

Step = Callable[[], Awaitable[None] | None]
"""A step of a device: done when it returns None, else when what it returns has been awaited."""


async def after_return(storages: Iterable[Storage], step: Step) -> None:
    """Wait until memory that is lent out has come back, then take the step."""
    for storage in storages:
        if storage.lent is not None:
            await storage.lent.wait()
    pending = step()
    if pending is not None:
        await pending
