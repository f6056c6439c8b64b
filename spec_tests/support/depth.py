"""The depth of testing: ``--depth=quick`` (the default), ``full`` or ``thorough``.

Quick leaves out most of what costs most, compiling kernels for software Vulkan. Of a test that is marked
``sampled(parts)``, each run has one case in so many, all of those on numpy where it runs on every device: others each
day, all of them in so many days running. A test without cases that is itself marked runs on one day in so many.
Full has them all, but of the costliest, ``sampled(parts, full=fewer)``, one in so many; thorough leaves out nothing.
"""

import datetime as dt

DEPTH = "--depth"
SEED = "--seed"
MARK = "sampled"


def pytest_addoption(parser):
    group = parser.getgroup("depth", "how much is tested")
    group.addoption(DEPTH, choices=["quick", "full", "thorough"], default="quick", help="default: quick")
    group.addoption(SEED, type=int, metavar="N", help="which share of the sampled cases is tested (default: today's)")


def configure(config):
    config.addinivalue_line("markers", f"{MARK}(parts, full=1): of its cases, a quick run has one in so many")
    if config.option.seed is None:  # workers are given the seed of the process that starts them
        config.option.seed = dt.datetime.now(dt.UTC).date().toordinal()


def pytest_report_header(config):
    again = "" if is_thorough(config) else f" {SEED}={config.option.seed}"
    return f"depth: {DEPTH}={config.option.depth}{again}"


def is_full(config):
    return config.option.depth != "quick"


def is_thorough(config):
    return config.option.depth == "thorough"


def amount(config, *, quick, full, thorough):
    """One of three, by the depth: how many of what comes at random are tried, or one in how many of a list."""
    return {"quick": quick, "full": full, "thorough": thorough}[config.option.depth]


def has_turn(config, position, parts):
    """Return whether the item at ``position`` of a list is in today's share, one in ``parts``."""
    return (position + config.option.seed) % parts == 0


def has_cells(item):
    """Return whether a test chooses among its cells itself (:mod:`.cells`)."""
    return hasattr(getattr(item, "function", None), "axes")


def deselect(config, items, is_wanted):
    """Leave out the tests that are not wanted; one that was named in full is."""
    named = {argument for argument in config.args if "::" in argument}
    dropped = [item for item in items if not (is_wanted(item) or item.nodeid in named)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]


def choose(config, items):
    """Leave out the sampled cases that have no turn."""
    positions = {}

    def is_wanted(item):
        given = getattr(item, "callspec", None)
        marks = item.iter_markers(MARK) if given is not None else (one for one in item.own_markers if one.name == MARK)
        mark = next(marks, None)
        if mark is None or has_cells(item) or (given is not None and given.params.get("backend") == "numpy"):
            return True
        function = item.nodeid.partition("[")[0]
        # Functions begin at different places, or all would have their first case on the same day.
        position = positions[function] = positions.get(function, sum(map(ord, function))) + 1
        return has_turn(
            config, position, amount(config, quick=mark.args[0], full=mark.kwargs.get("full", 1), thorough=1)
        )

    deselect(config, items, is_wanted)
