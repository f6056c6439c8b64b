"""The seam: the script timeline, the device timeline, and the promises that cross it.

::

    script timeline    write ─┐ dispatch ─┐ read ─┐ destroy ─┐           settle read
    (your tasks)              │           │       │  (rejects│the read       ▲
                              ▼           ▼       ▼   at once)▼              │
    device timeline        [write] → [dispatch] → [read] → [release]  ───────┘
    (one FIFO a context)

Everything that a script asks of a device is an entry of the context's device timeline, in the order of the calls.
Every answer of the device is an entry of the script timeline, in the order in which the answers came. Each
timeline is drained by exactly one trio task: trio starts tasks in random order, so nothing that must be ordered is
a task of its own.
"""
