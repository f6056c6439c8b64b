"""Small frozen records that contexts hand out."""

from collections.abc import Mapping
from typing import Literal

import attrs

MLPowerPreference = Literal["default", "high-performance", "low-power"]


@attrs.frozen
class MLContextLostInfo:
    """The reason for the loss of a context (section "MLContextLostInfo")."""

    message: str


@attrs.frozen
class ContextStatistics:
    """The buffers, bytes and operations of a context at one time.

    Attributes:
        live_buffers: buffers that have memory on the device.
        live_bytes: bytes on the device: buffers, graphs' constants and intermediates, reads in flight.
        queued_operations: device operations that wait or run.
        queued_bytes: bytes of user data that those hold.
        host_copies: how often bytes were copied between host and device.
        of_backend: counts of the device's own, by its names: ``docs/buffers.md`` lists those of this package's devices.
    """

    live_buffers: int
    live_bytes: int
    queued_operations: int
    queued_bytes: int
    host_copies: int
    of_backend: Mapping[str, int] = attrs.field(hash=False)
