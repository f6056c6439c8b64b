"""Tests on all cores: what shares results stays together, and what takes long comes first.

There is a worker more than there are cores, since some tests wait: for processes, time limits and GPUs.

Folders are tested on all cores. Files, and tests of them, are tested in pytest's own process, since starting others
takes longer; ``-n`` with a number is obeyed.
"""

import os
import re
from contextlib import suppress
from importlib import import_module

import pytest
import xdist
from xdist.scheduler import LoadScopeScheduling

LONGEST = ("operators/test_choosing", "operators/test_cases", "on_wgpu/", "wpt/")
"""The files that compile most kernels or start processes: they come first, so that all workers end together."""

LONG_OPERATORS = (
    "conv_transpose2d",
    "conv2d",
    "lstm",
    "gru",
    "max_pool2d",
    "l2_pool2d",
    "average_pool2d",
    "resample2d",
)
"""Likewise of the operators."""

OPERATOR = re.compile(r"operators/test_cases\.py::.*\[.*?(numpy|onnxruntime|reference|wgpu)-(?:as_\w+-)?(\w+)")
TEXTS = re.compile(r"test_products_with_the_same_key_have_the_same_text\[(\w+)\]$")
"""Most of what this compiles of an operator its cases have compiled."""

VECTORS = re.compile(r"wpt/test_vectors\.py::.*\b(numpy|reference|wgpu)\b")


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config):
    """A worker more than there are cores where a folder is tested; none for files."""
    paths = [argument.partition("::")[0] for argument in config.args]
    return 0 if config.option.collectonly or all(path.endswith(".py") for path in paths) else cores() + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Import the files of all tests in an order of this worker's own, or each worker would compile all of them.

    Pytest then collects them in the same order everywhere, and finds them imported.
    """
    config = session.config
    if not xdist.is_xdist_worker(session) or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    files = sorted(path.relative_to(config.rootpath) for path in (config.rootpath / "spec_tests").rglob("test_*.py"))
    own = len(files) * int(xdist.get_xdist_worker_id(session)[2:]) // config.workerinput["workercount"]
    for file in files[own:] + files[:own]:
        with suppress(Exception, pytest.skip.Exception):  # which collecting it raises again
            import_module(".".join(file.with_suffix("").parts))


def cores():
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)


def group_of(nodeid):
    """The tests that share what one of them has computed; others are grouped by file, on the GPU by function."""
    if (found := OPERATOR.search(nodeid)) is not None:
        return f"operators/test_cases {found[2]} {found[1]}"
    if (found := TEXTS.search(nodeid)) is not None:
        return f"operators/test_cases {found[1]} wgpu"
    if (found := VECTORS.search(nodeid)) is not None:
        return f"wpt/test_vectors {found[1]}"
    file = nodeid.partition("::")[0]
    return nodeid.partition("[")[0] if any(name in file for name in LONGEST) else file


def rank(group):
    """The place of a group in the order in which they are begun."""
    kind = next((place for place, name in enumerate(LONGEST) if name in group), len(LONGEST))
    operator = next(
        (place for place, name in enumerate(LONG_OPERATORS) if f" {name} wgpu" in group), len(LONG_OPERATORS)
    )
    return kind if operator == len(LONG_OPERATORS) else -1, operator


class Scheduling(LoadScopeScheduling):
    """Gives each worker a group at a time."""

    def __init__(self, config, log):
        super().__init__(config, log)
        self._positions = {}

    def _split_scope(self, nodeid):
        return group_of(nodeid)

    def add_node_collection(self, node, collection):
        super().add_node_collection(node, collection)
        self._positions[node] = {nodeid: position for position, nodeid in enumerate(collection)}

    def _reschedule(self, node):
        if node in self._positions:  # unless it has taken a crashed worker's place, and still collects
            super()._reschedule(node)

    def _assign_work_unit(self, node):
        assigned = self.assigned_work.setdefault(node, {})
        for group in [group for group, unit in assigned.items() if all(unit.values())]:
            del assigned[group]  # or each result would go through all of them
        group = min(self.workqueue, key=rank)
        unit = assigned[group] = self.workqueue.pop(group)
        positions = self._positions[node]
        node.send_runtest_some([positions[nodeid] for nodeid, is_done in unit.items() if not is_done])
