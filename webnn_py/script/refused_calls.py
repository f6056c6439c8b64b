"""Calls that are refused: reported to instruments and traces, as an exception or as a rejected promise."""

import threading
from collections.abc import Iterable, Iterator
from sys import _getframe
from time import perf_counter_ns
from typing import Any, cast

from webnn_py.device.backend import Storage
from webnn_py.device.device import GraphHandle
from webnn_py.script.interfaces import CallReceiver
from webnn_py.timelines.promise import MLPromise
from webnn_py.tracing.events import RefusedCall
from webnn_py.tracing.source import source_of, user_line


class HasHandle:
    """A buffer or a graph: traces identify it by the number of its handle on the device."""

    __slots__ = ()

    @property
    def _device_handle(self) -> Storage | GraphHandle:
        raise NotImplementedError


def rejected_promise(receiver: CallReceiver, method: str, error: Exception, *arguments: object) -> MLPromise[Any]:
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
    code, instruction = user_line(_getframe(1))
    return MLPromise._refused(error, f"{method}()", None if code is None else (code, instruction))


def report_refusal(receiver: CallReceiver, method: str, error: Exception, *arguments: object, label: str = "") -> None:
    """Report a refused call to the instruments; the caller then raises the error.

    Args:
        receiver: as for :func:`rejected_promise`.
        method: as there.
        error: as there.
        arguments: as there.
        label: the label of the operator, buffer or graph that the call would have made.
    """
    instruments = receiver._instruments
    if not instruments.methods["refused"] or threading.get_ident() != receiver._trio_run.thread:
        return
    now = perf_counter_ns()
    code, instruction = user_line(_getframe(1))
    handles = list(_handles(arguments))
    buffers = [handle for handle in handles if type(handle) is Storage]
    graphs = [handle for handle in handles if type(handle) is not Storage]
    began_ns = instruments.began_ns if instruments.call == f"{method}()" else now
    call = RefusedCall(
        method=method,
        context=receiver._traced,
        error=f"{type(error).__name__}: {error}",
        source=instruments.caller or (None if code is None else source_of(code, instruction)),
        labels=tuple(filter(None, [label, *(handle.label for handle in handles)])),
        buffers=tuple(map(instruments.number_of, buffers)),
        graph=instruments.number_of(graphs[0]) if graphs else None,
        call_ns=now - began_ns,
    )
    instruments.notify("refused", call)


def _handles(arguments: Iterable[object]) -> Iterator[Any]:
    """Yield the handles of buffers and graphs, each once."""
    # Mappings other than dicts are not looked into: their methods may do anything.
    items = (item for value in arguments for item in (value.values() if type(value) is dict else (value,)))
    having = (item for item in items if issubclass(type(item), HasHandle))  # an object may deceive isinstance()
    yield from dict.fromkeys(cast("HasHandle", item)._device_handle for item in having)
