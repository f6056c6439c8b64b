"""Traces and checks: observers that record the events of an ``open_ml()`` block, and find redundant work in them.

:mod:`webnn_py.tracing.page` is the HTML file that shows a trace.
"""

from webnn_py.tracing.checks import Check, CheckFinding, check
from webnn_py.tracing.events import KernelRecord, RefusedCall, TraceEvent
from webnn_py.tracing.operation import Operation
from webnn_py.tracing.source import Source
from webnn_py.tracing.traces import Trace, trace

__all__ = [
    "Check",
    "CheckFinding",
    "KernelRecord",
    "Operation",
    "RefusedCall",
    "Source",
    "Trace",
    "TraceEvent",
    "check",
    "trace",
]
