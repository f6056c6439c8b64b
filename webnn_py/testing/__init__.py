"""Every order of a small program's steps: what a specification allows, found out by running it.

From the top::

    exploring     interleavings() and replay(): which orders are run, which are the same
    execution     one order, step by step
    ending        what an order ends with, and what is wrong with that
    agents        the script's side: sequences of actions, each a task that goes on when it has its turn
    records       the report, and what is in it
"""

from webnn_py.testing.exploring import interleavings, replay
from webnn_py.testing.records import Counted, Ended, Outcome, Report, TooManyOrdersError, Violation

__all__ = [
    "Counted",
    "Ended",
    "Outcome",
    "Report",
    "TooManyOrdersError",
    "Violation",
    "interleavings",
    "replay",
]

for _name in __all__:
    _thing = globals()[_name]
    if isinstance(_thing, type):
        _thing.__module__ = __name__  # messages and reprs show the public name
del _name, _thing
