"""Calls that are refused: traces are told of each, and what is to be awaited warns when nobody does."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from sys import _getframe
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, cast

from webnn_py.device.backend import Storage
from webnn_py.script.living import IsNumbered
from webnn_py.timelines.promise import MLPromise
from webnn_py.tracing.events import RefusedCall
from webnn_py.tracing.source import source_of, user_line

if TYPE_CHECKING:
    from webnn_py.script.context import MLContext
    from webnn_py.script.ml import ML


def rejected(of: ML | MLContext, method: str, error: Exception, *given: object) -> MLPromise[Any]:
    """Refuse a call by a promise that is rejected from the start.

    Args:
        of: what was called, or the context that it belongs to.
        method: the method's name, which the error's text gets in front, if it lacks it.
        error: why the call is refused.
        given: buffers and graphs among the call's arguments, or mappings with such; others are not looked at.
    """
    if not str(error).startswith(f"{method}()"):
        cause, error = error.__cause__, type(error)(f"{method}(): {error}")
        error.__cause__ = cause
    refused(of, method, error, *given)
    code, instruction = user_line(_getframe(1))
    return MLPromise._refused(error, f"{method}()", None if code is None else (code, instruction))


def refused(of: ML | MLContext, method: str, error: Exception, *given: object, label: str = "") -> None:
    """Tell those who watch of a call that is refused, which then raises; see :func:`rejected` for the arguments.

    Args:
        of: see there.
        method: see there.
        error: see there.
        given: see there.
        label: that which the call gave to what it should have made.
    """
    context = None if hasattr(of, "script_timeline") else of
    ml = cast("ML", of) if context is None else context._ml
    instruments = ml._instruments
    if not instruments.told["refused"] or threading.get_ident() != ml.script_timeline.trio_run.thread:
        return
    now = perf_counter_ns()
    code, instruction = user_line(_getframe(1))
    things = list(_things(given))
    buffers = [thing for thing in things if type(thing) is Storage]
    graphs = [thing for thing in things if type(thing) is not Storage]
    began_ns = instruments.began_ns if instruments.call == f"{method}()" else now
    call = RefusedCall(
        method=method,
        context=None if context is None else context._traced,
        error=f"{type(error).__name__}: {error}",
        source=instruments.caller or (None if code is None else source_of(code, instruction)),
        labels=tuple(filter(None, [label, *(thing.label for thing in things)])),
        buffers=tuple(map(instruments.number_of, buffers)),
        graph=instruments.number_of(graphs[0]) if graphs else None,
        call_ns=now - began_ns,
    )
    instruments.tell("refused", call)


def _things(given: Iterable[object]) -> Iterator[Any]:
    """Yield the storages of buffers and the handles of graphs, each once."""
    # Of other mappings than dicts nothing is asked: they may do anything.
    handles = (item for thing in given for item in (thing.values() if type(thing) is dict else (thing,)))
    yield from dict.fromkeys(cast("IsNumbered", item)._numbered for item in handles if _is_numbered(item))


def _is_numbered(thing: object) -> bool:
    return issubclass(type(thing), IsNumbered)  # not isinstance(): an object may lie about its class
