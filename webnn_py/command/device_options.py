"""The device that a command line names."""

import argparse
from typing import Any, Final

from webnn_py.command.failures import BadInputError

OWNERS: Final = {"execution_provider": "onnxruntime", "gpu_engine": "wgpu"}
"""The devices that have an option of a command line."""


def device_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a context on the device that a command line names.

    Raises:
        BadInputError: an option is another device's.
    """
    given = {"backend": options.backend}
    for name, owner in OWNERS.items():
        given[name] = getattr(options, name)
        if given[name] is not None and options.backend not in (None, owner):
            argument = f"--{name.replace('_', '-')}"
            raise BadInputError(f"{argument} is {owner}'s; give --backend {owner} with it, not {options.backend}")
    return {name: value for name, value in given.items() if value is not None}
