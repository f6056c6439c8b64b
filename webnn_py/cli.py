"""The ``webnn-py`` command."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

import webnn_py
from webnn_py.device import registry
from webnn_py.javascript.arguments import add_parsers
from webnn_py.javascript.words import OutputClosedError, say

INTERRUPTED = 130
"""The status that shells give a program which Ctrl-C ended."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="webnn-py", description="The Web Neural Network API in Python.")
    parser.add_argument("--version", action="version", version=f"webnn_py {webnn_py.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("devices", help="list the devices that contexts can run on")
    add_parsers(commands)
    return parser


def _devices() -> None:
    rows = [("backend", "adapter", "driver", "features")]
    for name in registry.names():
        try:
            found = registry.find(name).adapters()
        except Exception as error:  # noqa: BLE001 - a driver, or another package, may fail in any way
            rows.append((name, "none", str(error) or type(error).__name__, ""))
            continue
        rows += [(name, info.adapter, info.driver, ", ".join(info.features)) for info in found]
    rows += [(name, "none", why, "") for name, why in registry.collisions()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 130 after Ctrl-C, 1 when nobody reads what it prints."""
    options = _parser().parse_args(arguments)
    status = 1
    try:
        status = _run(options)
    except* OutputClosedError:
        _abandon_output()
    except* KeyboardInterrupt:
        status = INTERRUPTED
    return status


def _abandon_output() -> None:
    """Let the interpreter's last flush, which would fail again, go nowhere."""
    with contextlib.suppress(OSError, AttributeError):  # there may be none, or one without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    if options.command == "devices":
        _devices()
        return 0
    from webnn_py.javascript import commands  # noqa: PLC0415 - what these two need is heavy

    return commands.run(options)


if __name__ == "__main__":
    sys.exit(main())
