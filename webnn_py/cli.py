"""The ``webnn-py`` command."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

import webnn_py
from webnn_py.command import entry
from webnn_py.command.arguments import OneLineParser
from webnn_py.command.arguments import add_parsers as add_model_parsers
from webnn_py.javascript.arguments import add_parsers as add_javascript_parsers
from webnn_py.javascript.words import OutputClosedError, OutputFailedError, say

INTERRUPTED = 130
"""The status that shells give a program which Ctrl-C ended."""


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = OneLineParser(
        prog="webnn-py", description="The Web Neural Network API in Python."
    )
    parser.add_argument("--version", action="version", version=f"webnn_py {webnn_py.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parser.set_defaults(parser=parser)  # completion is made from all of it
    add_model_parsers(commands)
    add_javascript_parsers(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 130 after Ctrl-C, 1 when its output is closed."""
    try:
        return _ended(_parser().parse_args(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED


def _ended(options: argparse.Namespace) -> int:
    status = 1
    try:
        if options.command in entry.COMMANDS:
            status = entry.run(options)
        else:
            from webnn_py.javascript import commands  # noqa: PLC0415 - what these two need is heavy

            status = commands.run(options)
    except* OutputFailedError as failed:
        _abandon_output()
        with contextlib.suppress(OutputClosedError):
            say(f"webnn-py {options.command}: the output cannot be written: {failed.exceptions[0]}", sys.stderr)
    except* OutputClosedError:
        _abandon_output()
    except* KeyboardInterrupt:
        status = INTERRUPTED
    return status


def _abandon_output() -> None:
    """Let the interpreter's last flush, which would fail again, go nowhere."""
    with contextlib.suppress(OSError, AttributeError):  # there may be none, or one without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
