"""Instruments, which are called for every event on the timelines, and the trace, which is one.

It is a layer below the timelines, which call it and pass on their entries and devices' memory unchanged: the members
that are used are declared in :mod:`webnn_py.tracing.instruments` and :mod:`webnn_py.tracing.operation`.
:mod:`webnn_py.tracing.page` is the HTML file that shows a trace.
"""

from webnn_py.tracing.events import KernelRecord, RefusedCall, TraceEvent
from webnn_py.tracing.instruments import Instrument
from webnn_py.tracing.operation import Operation, TracedContext
from webnn_py.tracing.source import Source
from webnn_py.tracing.trace import Trace

__all__ = [
    "Instrument",
    "KernelRecord",
    "Operation",
    "RefusedCall",
    "Source",
    "Trace",
    "TraceEvent",
    "TracedContext",
]
