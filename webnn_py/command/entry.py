"""Running one of the commands: errors become one line on the standard error, and a status."""

import argparse
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from webnn_py.command.failures import ended_by_interrupts, one_line, status_of
from webnn_py.command.printing import print_lines
from webnn_py.errors import leaves
from webnn_py.javascript.words import OutputClosedError

Command = Callable[[argparse.Namespace], int]

COMMANDS: Final = (
    *("run", "check", "info", "convert", "generate"),
    *("devices", "completion", "docs", "spec"),
)
"""Each is a module, and in it a function of its name."""


def run(options: argparse.Namespace) -> int:
    """Run the requested command, and return its status.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
        OutputClosedError: its output is closed.
    """
    with ended_by_interrupts():
        module = import_module(f"webnn_py.command.{options.command}")
    command = cast("Command", getattr(module, options.command))
    try:
        return command(options)
    except BaseException as error:  # noqa: BLE001 - all that a user should not have to read a traceback for
        found = [*leaves(error)]
        for leaf in found:
            if not isinstance(leaf, Exception) or isinstance(leaf, OutputClosedError):
                raise leaf from None
        if options.debug:
            print_lines(traceback.format_exc().splitlines(), sys.stderr)
        print_lines([f"webnn-py {options.command}: {one_line(found[0])}"], sys.stderr)
        return status_of(found[0])
