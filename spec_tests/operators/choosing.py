"""Which cases a run computes on the GPU; ``chosen.json``, which :mod:`.choose_cases` writes, has those that come first.

At quick depth these are computed as written, but of the costliest, and in other ways, a share.
"""

import json
from pathlib import Path

from spec_tests.support.depth import amount, deselect, share, turn

CASE = "--case"
CHOSEN = Path(__file__).with_name("chosen.json")
PARTS = 61
"""Of the cases that are not chosen, one in so many is computed at quick depth."""

PARTS_OF_REFERENCE = 3
"""Of all cases a quick run computes one in so many on the reference device, whose kernels are numpy's."""

PARTS_OF_CHOSEN = 5
"""Of the chosen cases that are costly, or not drawn as written, a quick run computes one in so many.

It is coprime to ``EVERY * len(WAYS)``, and so is ``PARTS``: the seeds together have every case in every way.
"""

LEAST_CHOSEN = 2
"""But at least so many of an operator as written."""

PARTS_AT_FULL_DEPTH = 17
"""Likewise at full depth, of those that are not drawn as written."""

COSTLY = (
    "conv2d",
    "conv_transpose2d",
    "cumulative_sum",
    "gemm",
    "gru",
    "gru_cell",
    "l2_pool2d",
    "lstm",
    "lstm_cell",
    "max_pool2d",
    "resample2d",
)
"""More than half of all that would be compiled of cases drawn as written are kernels of these."""

PARTS_OF_COSTLY = 3
"""Of theirs, one in so many of those that are not chosen is computed at full depth."""

WAYS = ("as_constant", "as_view", "as_part")
"""How else cases are drawn than as written; a quick run draws those of an operator in one of these ways, or in none."""

EVERY = 2
"""Of so many operators a quick run draws one in one of them."""


def pytest_addoption(parser):
    parser.addoption(CASE, metavar="TEXT", help="of the operators' cases, those whose names have this text")


class Choice:
    """The cases that one run of pytest computes."""

    def __init__(self, config):
        self._config = config
        self._chosen = json.loads(CHOSEN.read_text(encoding="utf-8"))

    def cases(self, backend, file, drawer, *, parts_of_chosen=PARTS_OF_CHOSEN):
        """The cases of a file that are computed on a backend, drawn in one way."""
        if self._config.option.case is not None:
            return tuple(case for case in file.cases if self._config.option.case in case.name)
        if drawer in WAYS and not self._is_drawn(file.operator, drawer):
            return ()
        if backend == "reference":
            parts = amount(self._config, quick=PARTS_OF_REFERENCE, full=1, thorough=1)
            names = self._share(file, drawer, (case.name for case in file.cases), parts, least=LEAST_CHOSEN)
        elif backend == "wgpu":
            names = self._on_gpu(file, drawer, parts_of_chosen)
        else:
            return file.cases
        return tuple(case for case in file.cases if case.name in names)

    def _is_drawn(self, operator, way):
        """Return whether a run draws the cases of an operator in a way: a quick one in one of them, or in none."""
        ways = amount(self._config, quick=EVERY * len(WAYS), full=1, thorough=1)
        return ways == 1 or turn(self._config, operator, ways) == WAYS.index(way)

    def _on_gpu(self, file, drawer, parts_of_chosen):
        """Return the names of the cases for the GPU: the chosen ones, or a share of them, and a share of the others."""
        as_written = PARTS_OF_COSTLY if file.operator in COSTLY else 1
        at_full_depth = as_written if drawer == "as_written" else PARTS_AT_FULL_DEPTH
        parts = amount(self._config, quick=PARTS, full=at_full_depth, thorough=1)
        chosen = self._chosen.get(file.operator, {}).get(drawer, [])
        parts_of_chosen = amount(self._config, quick=parts_of_chosen, full=1, thorough=1)
        if drawer == "as_written" and file.operator not in COSTLY:
            parts_of_chosen = 1
        least = LEAST_CHOSEN if drawer == "as_written" else None
        every = (case.name for case in file.cases)
        return self._share(file, drawer, chosen, parts_of_chosen, least=least) | self._share(file, drawer, every, parts)

    def _share(self, file, drawer, names, parts, *, least=None):
        """Return the share of the cases with these names; it is another one for each operator and drawer."""
        before = f"{file.operator} {drawer} "
        wanted = share(self._config, [before + name for name in names], parts, least=least)
        return {name.removeprefix(before) for name in wanted}


def choose(config, items):
    """Leave out the tests that have no case to compute."""
    choice = Choice(config)

    def is_wanted(item):
        given = getattr(item, "callspec", None)
        if given is None or not {"file", "backend", "drawer"} <= given.params.keys():
            return True
        return bool(choice.cases(given.params["backend"], given.params["file"], given.params["drawer"]))

    deselect(config, items, set(filter(is_wanted, items)))
