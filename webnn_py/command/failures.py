"""Errors as one line and an exit status."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Final

from webnn_py.core.errors import DOMException, NotSupportedError
from webnn_py.core.message_text import kind, visible
from webnn_py.extras import install_command
from webnn_py.tracing.trace_file import TraceFileError

FAILED: Final = 1
"""The status when something could not be done."""

BAD_INPUT: Final = 2
"""The status for wrong arguments or files, as argparse uses it."""


class _OneLineError(Exception):
    """An error whose text is one line without control characters, also in a traceback.

    Args:
        text: what is wrong; it may quote what a file has.
    """

    def __init__(self, text: str) -> None:
        super().__init__(visible(" ".join(text.split())))


class BadInputError(_OneLineError):
    """The user gave a name, a shape or a file that cannot be used."""


class CommandFailedError(_OneLineError):
    """The command could not do what it was asked for."""


def status_of(error: BaseException) -> int:
    """Return the status with which an error ends the program."""
    return BAD_INPUT if isinstance(error, (BadInputError, NotSupportedError)) else FAILED


def one_line(error: BaseException) -> str:
    """Return an error's message in one line, with its type if it is unexpected."""
    text = visible(" ".join(str(error).split()))
    if isinstance(error, (_OneLineError, DOMException, TraceFileError)) and text:
        return text
    if isinstance(error, MemoryError):
        return f"there is not enough memory{': ' if text else ''}{text}; give smaller sizes by --shape"
    named = f"{kind(error)}: {text}" if text else kind(error)
    return f"{named} (--debug shows where)"


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """End the process at Ctrl-C while modules are imported, which may swallow the exception of an interrupt."""
    usual = signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(128 + signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def needed(module: str, purpose: str, how: str | None = None) -> ModuleType:
    """Import what is an extra.

    Args:
        module: the module.
        purpose: what it is needed for.
        how: the command that installs it; that of the extra ``cli`` if not given.

    Raises:
        CommandFailedError: it is not installed.
    """
    try:
        with ended_by_interrupts():
            return import_module(module)
    except ImportError as error:
        raise CommandFailedError(f"{purpose} needs more: {how or install_command('cli')} ({error})") from error
