"""The passes that have an effect on what is built."""

from collections.abc import Iterator
from contextlib import contextmanager

from webnn_py.devices.rewriting.passes import PassManager


@contextmanager
def effective_passes() -> Iterator[set[str]]:
    """Collect the names of the passes that change what is built in the context."""
    names: set[str] = set()
    run = PassManager.run

    def watched(passes, graph, context):
        made, reports = run(passes, graph, context)
        for report in reports:
            shared = {one.rule for one in report.applied} if len(report.names) > 1 else set(report.names)
            names.update(shared.intersection(report.names) if report.is_changed else ())
        return made, reports

    PassManager.run = watched
    try:
        yield names
    finally:
        PassManager.run = run
