"""The depth of testing: ``--depth=quick`` (the default), ``full`` or ``thorough``.

Quick leaves out most of what costs most, compiling kernels for software Vulkan. Of a test that is marked
``sampled(parts)``, a run has one case in so many, all of those on numpy where it runs on every device. Full has them
all, but of the costliest, ``sampled(parts, full=fewer)``, one in so many; thorough leaves out nothing.

Which ones a run has depends on their names and the options alone: each name has a digest, and a run has those whose
digests, divided by the number of parts, leave the same remainder. Each ``--seed=N`` is another share.
"""

import hashlib
from collections import defaultdict

DEPTH = "--depth"
SEED = "--seed"
MARK = "sampled"


def pytest_addoption(parser):
    group = parser.getgroup("depth", "how much is tested")
    group.addoption(DEPTH, choices=["quick", "full", "thorough"], default="quick", help="default: quick")
    group.addoption(SEED, type=int, metavar="N", default=0, help="which share of the sampled cases is tested")


def configure(config):
    config.addinivalue_line("markers", f"{MARK}(parts, full=1): of its cases, a quick run has one in so many")


def pytest_report_header(config):
    return f"depth: {DEPTH}={config.option.depth} {SEED}={config.option.seed}"


def is_full(config):
    return config.option.depth != "quick"


def is_thorough(config):
    return config.option.depth == "thorough"


def amount(config, *, quick, full, thorough):
    """One of three, by the depth: how many of what comes at random are tried, or one in how many of a list."""
    return {"quick": quick, "full": full, "thorough": thorough}[config.option.depth]


def turn(config, name, parts):
    """Return which of ``parts`` shares has the item of this name; this run tests share 0."""
    digest = int.from_bytes(hashlib.sha256(name.encode(errors="backslashreplace")).digest()[:8])
    return (digest + config.option.seed) % parts


def has_turn(config, name, parts):
    """Return whether the item of this name is in this run's share, one in ``parts``."""
    return turn(config, name, parts) == 0


def share(config, names, parts, *, least=None):
    """Return which of ``names`` this run tests: one in ``parts``, and at least so many.

    By default the least is one where there are as many names as parts.
    """
    turns = {name: turn(config, name, parts) for name in names}
    if least is None:
        least = 1 if len(turns) >= parts else 0
    count = max(least, sum(place == 0 for place in turns.values()))
    return set(sorted(turns, key=turns.__getitem__)[:count])


def share_of_items(config, items, parts_of, *, least=None):
    """Return the items that this run tests: those without parts, and of each function's others their share.

    ``parts_of(item)`` is None, or of how many items of its function a run has one.
    """
    kept, groups = set(), defaultdict(list)
    for item in items:
        if (parts := parts_of(item)) is None:
            kept.add(item)
        else:
            groups[item.nodeid.partition("[")[0], parts].append(item)
    for (_, parts), members in groups.items():
        chosen = share(config, [item.nodeid for item in members], parts, least=least)
        kept.update(item for item in members if item.nodeid in chosen)
    return kept


def has_cells(item):
    """Return whether a test chooses among its cells itself (:mod:`.cells`)."""
    return hasattr(getattr(item, "function", None), "axes")


def deselect(config, items, wanted):
    """Leave out the tests that are not among the wanted ones; one that was named in full is."""
    named = {argument for argument in config.args if "::" in argument}
    dropped = [item for item in items if not (item in wanted or item.nodeid in named)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]


def choose(config, items):
    """Leave out the sampled cases that are not in this run's share; a full run has at least one of each test."""

    def parts_of(item):
        given = getattr(item, "callspec", None)
        marks = item.iter_markers(MARK) if given is not None else (one for one in item.own_markers if one.name == MARK)
        mark = next(marks, None)
        if mark is None or has_cells(item) or (given is not None and given.params.get("backend") == "numpy"):
            return None
        return amount(config, quick=mark.args[0], full=mark.kwargs.get("full", 1), thorough=1)

    deselect(config, items, share_of_items(config, items, parts_of, least=1 if is_full(config) else None))
