"""Memory that a user's own GPU work borrows, and contents that come back from another device."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, final, runtime_checkable

import trio

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.device.bookkeeping.lent_memory import after_return
from webnn_py.core.device.device import Device
from webnn_py.core.errors import UnknownError
from webnn_py.core.in_flight import done
from webnn_py.core.unreported_errors import Line


@runtime_checkable
class Lends(Protocol):
    """A backend whose memory can be shared with a user's own GPU work.

    Attributes:
        device: the GPU device that the memory belongs to.
    """

    device: Any

    def check_foreign(self, value: object, descriptor: MLOperandDescriptor) -> Any:
        """Return a user's buffer as memory for ``descriptor``; raise ``TypeError`` where it cannot be."""

    def lend(self, storage: Storage, come_back: Callable[[], None], is_out: Callable[[], bool]) -> Any:
        """Return the memory of ``storage`` for a user, who returns it by ``come_back`` while it ``is_out``."""


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


def lend(
    device: Device, storage: Storage, give: Callable[[Any], None], returned: Callable[[], None] = lambda: None
) -> Awaitable[None] | None:
    """Lend the memory of ``storage`` through ``give``; steps that need it wait until it is ``returned``."""
    if storage.lent is not None:
        return after_return([storage], lambda: lend(device, storage, give, returned))
    backend = device.backend
    assert isinstance(backend, Lends)  # noqa: S101 - the script checks it before
    back = trio.Event()
    device.hold_back(storage, back)

    def come_back() -> None:
        device.let_go_on(storage)
        back.set()
        returned()

    try:
        give(backend.lend(storage, come_back, lambda: storage.lent is back))
    except BaseException:
        come_back()
        raise
    return None


def shared_device(device: Device) -> object:
    """Return the GPU device that the memory belongs to; None where it cannot be lent."""
    return device.backend.device if isinstance(device.backend, Lends) else None


async def take_back(device: Device, storage: Storage, arrival: Arrival, line: Line | None = None) -> None:
    """Wait for contents and store them; if they are lost, that marks ``storage``."""
    if not arrival.event.is_set():
        device.hold_back(storage, arrival.event)
        await arrival.event.wait()
        device.let_go_on(storage)
    if arrival.failure is not None:
        device.fail([storage], "export_to_gpu()", UnknownError(arrival.failure), line)
    elif arrival.data is not None:  # else the context is lost
        await done(device.write(storage, arrival.data, line))
