"""Who may watch the timelines: the API's ``add_instrument``, ``remove_instrument`` and ``trace``.

A mixin of :class:`ML`, which says what the methods lean on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio.lowlevel import enable_ki_protection

from webnn_py.descriptors import converted
from webnn_py.device.backend import TimesKernels
from webnn_py.message_text import shown
from webnn_py.operators.idl import boolean
from webnn_py.script.touched import touched
from webnn_py.timelines.script_timeline import ScriptTimeline
from webnn_py.tracing.instruments import ContextWatch, Instruments, ScriptWatch
from webnn_py.tracing.trace import MOST_EVENTS, Present, Trace

if TYPE_CHECKING:
    from webnn_py.script.context import MLContext


class IsWatched:
    """What the owner of the timelines offers to those who want to know what happens on them.

    Not in the specification.
    """

    script_timeline: ScriptTimeline
    _contexts: dict[MLContext, None]
    _instruments: Instruments
    _watches: dict[MLContext, ContextWatch]

    @enable_ki_protection
    def add_instrument(self, instrument: object) -> None:
        """Have an instrument told of what happens on the timelines from now on.

        Args:
            instrument: has any of the methods of :class:`webnn_py.tracing.Instrument`.

        Raises:
            ValueError: it was added before.
        """
        self.script_timeline.trio_run.check("add_instrument()")
        if not self._instruments.add(instrument):
            raise ValueError(f"add_instrument(): {shown(instrument)} was added before")

    @enable_ki_protection
    def remove_instrument(self, instrument: object) -> None:
        """Tell an instrument no more.

        Args:
            instrument: was added before.

        Raises:
            KeyError: it was not, or it was removed, perhaps because it had raised.
        """
        if not self._instruments.remove(instrument):
            raise KeyError(f"remove_instrument(): {shown(instrument)} is not an instrument of this")

    def trace(self, *, kernels: bool = False, most_events: int = MOST_EVENTS) -> Trace:
        """Record what happens on the timelines: ``with ml.trace() as trace``.

        Args:
            kernels: whether dispatches are timed kernel by kernel, on devices that can; they then take longer, and
                those on a GPU no longer overlap.
            most_events: so many events are kept, the latest.

        Raises:
            TypeError: an argument has the wrong type.
        """
        if isinstance(most_events, bool) or not isinstance(most_events, int) or most_events < 1:
            raise TypeError(f"trace(): most_events is {shown(most_events)}; it must be an integer from 1")
        return Trace(self, most_events=most_events, kernels=converted("trace(): kernels", boolean, kernels))

    def _present(self) -> list[Present]:
        """The contexts, with what there is on each."""
        present = []
        for context in self._contexts:
            buffers = [buffer._storage for buffer in context._buffers]
            graphs = [graph._handle for graph in context._graphs]
            for buffer in buffers:
                self._instruments.number_of(buffer)
            for graph in graphs:
                self._instruments.number_of(graph)
            present.append(Present(self._watches[context].context, buffers, graphs, context._timeline.entries()))
        return present

    def _watch(self) -> None:
        """Have the timelines tell the instruments, if there are any."""
        timeline, instruments = self.script_timeline, self._instruments
        if not instruments:
            timeline.watch = timeline.trio_run.watch = None
        elif timeline.watch is None:
            timeline.watch = ScriptWatch(instruments)
            timeline.trio_run.watch = instruments
        for context in self._contexts:
            self._watch_timeline(context)

    def _watch_context(self, context: MLContext) -> None:
        """A context was made."""
        watch = self._watches[context] = self._instruments.watch(context._device, touched, context._label)
        context._traced = watch.context
        if self._instruments:
            self._watch_timeline(context)
            self._instruments.tell("opened", watch.context)

    def _watch_timeline(self, context: MLContext) -> None:
        timeline, device, watch = context._timeline, context._device, self._watches[context]
        if not self._instruments:
            timeline.watch = None
            watch.rest()
        elif timeline.watch is None:
            timeline.watch = watch
            for entry in timeline.entries():
                watch.adopt(entry)
        is_timed = self._instruments.wants_kernels and isinstance(device.backend, TimesKernels)
        watch.arrange(is_timed=is_timed)
        device.watch_kernels = watch.kernels if is_timed else None
