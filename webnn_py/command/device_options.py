"""The device that a command line names."""

import argparse
from typing import Any

from webnn_py.command.failures import BadInputError


def device_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a context on the device that a command line names.

    Raises:
        BadInputError: another device than onnxruntime is to have an execution provider.
    """
    given = {"backend": options.backend, "execution_provider": options.execution_provider}
    if options.execution_provider is not None and options.backend not in (None, "onnxruntime"):
        raise BadInputError(
            f"--execution-provider is onnxruntime's; give --backend onnxruntime with it, not {options.backend}"
        )
    return {name: value for name, value in given.items() if value is not None}
