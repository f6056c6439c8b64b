"""Steps of tools that take seconds: other tasks run meanwhile, and the loss of the context ends them."""

import trio

from webnn_py.core.device.device import Device
from webnn_py.core.errors import UnknownError


async def give_way(device: Device) -> None:
    """Let other tasks run during a step that takes seconds.

    Raises:
        UnknownError: the context is lost.
    """
    await trio.lowlevel.cancel_shielded_checkpoint()
    check_goes_on(device)


def check_goes_on(device: Device) -> None:
    """End a long step once the context is lost: the task that closes it, as on Ctrl-C, waits for the step's end.

    Raises:
        UnknownError: the context is lost.
    """
    if device.is_lost:
        raise UnknownError("the context was lost in the meantime")
