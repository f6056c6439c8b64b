"""Calls that are refused: reported to observers, as an exception or as a rejected promise."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from sys import _getframe
from typing import TYPE_CHECKING, Any

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.device.backend import Storage
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.observer import CallRefusal
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.core.unreported_errors import user_line

if TYPE_CHECKING:
    from webnn_py.core.api.context import MLContext
    from webnn_py.core.api.ml import ML


def rejected_promise(receiver: MLContext | ML, method: str, error: Exception, *arguments: object) -> MLPromise[Any]:
    """Report a refused call, and return a promise that is rejected from the start.

    Args:
        receiver: the object whose method was called, or the context that it belongs to.
        method: the method's name, which is put in front of the error's text if it is missing there.
        error: the reason for the refusal.
        arguments: arguments of the call; buffers and graphs among them, also in dicts, are reported.
    """
    if not str(error).startswith(f"{method}()"):
        cause, error = error.__cause__, type(error)(f"{method}(): {error}")
        error.__cause__ = cause
    report_refusal(receiver, method, error, *arguments)
    return MLPromise.refused(error, f"{method}()", user_line(_getframe(1)))


def report_refusal(
    receiver: MLContext | ML, method: str, error: Exception, *arguments: object, label: str = ""
) -> None:
    """Report a refused call to the observers; the caller then raises the error.

    Args:
        receiver: as for :func:`rejected_promise`.
        method: as there.
        error: as there.
        arguments: as there.
        label: the label of the operator, buffer or graph that the call would have made.
    """
    observers = receiver._observers
    if observers.hooks["refused"] and threading.get_ident() == receiver._trio_run.thread:
        refusal = CallRefusal(method, receiver._observed, error, tuple(_handles(arguments)), label)
        observers.notify("refused", refusal)


def _handles(arguments: Iterable[object]) -> Iterator[Storage | GraphHandle]:
    """Yield the handles of buffers and graphs, each once."""
    found: dict[Storage | GraphHandle, None] = {}
    for value in arguments:
        # Mappings other than dicts are not looked into: their methods may do anything.
        for item in value.values() if type(value) is dict else (value,):
            if type(item) is MLBuffer:  # an object may deceive isinstance()
                found[item._storage] = None
            elif type(item) is MLGraph:
                found[item._handle] = None
    yield from found
