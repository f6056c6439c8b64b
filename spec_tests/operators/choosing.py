"""Which cases a run computes on the GPU; ``chosen.json``, which :mod:`.choose_cases` writes, has those that come first.

At quick depth these are computed as written each day, but of the costliest, and in other ways, a share.
"""

import json
from pathlib import Path

from spec_tests.support.depth import amount, deselect, has_turn

CASE = "--case"
CHOSEN = Path(__file__).with_name("chosen.json")
PARTS = 61
"""Of the cases that are not chosen, one in so many is computed each day; a prime, so that every kind has its turn."""

PARTS_OF_REFERENCE = 3
"""Of all cases a quick run computes one in so many on the reference device, whose kernels are numpy's."""

PARTS_OF_CHOSEN = 5
"""Of the chosen cases that are costly, or not drawn as written, a quick run computes one in so many.

It is coprime to ``EVERY * len(WAYS)``, so that every case has its turn in every way.
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
"""In one of them it is drawn every so many days."""


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
        as_written = PARTS_OF_COSTLY if file.operator in COSTLY else 1
        at_full_depth = as_written if drawer == "as_written" else PARTS_AT_FULL_DEPTH
        parts = amount(self._config, quick=PARTS, full=at_full_depth, thorough=1)
        start = sum(map(ord, file.operator))  # or all operators would have their turns on the same days
        ways = amount(self._config, quick=EVERY * len(WAYS), full=1, thorough=1)
        if drawer in WAYS and not has_turn(self._config, start + EVERY * WAYS.index(drawer), ways):
            return ()
        if backend == "reference":
            parts = amount(self._config, quick=PARTS_OF_REFERENCE, full=1, thorough=1)
            least = min(parts, max(1, len(file.cases) // LEAST_CHOSEN))
            return tuple(case for at, case in enumerate(file.cases, start) if has_turn(self._config, at, least))
        if backend != "wgpu" or parts == 1:
            return file.cases
        chosen = self._chosen.get(file.operator, {}).get(drawer, [])
        parts_of_chosen = amount(self._config, quick=parts_of_chosen, full=1, thorough=1)
        if drawer == "as_written":
            most = len(chosen) // LEAST_CHOSEN if file.operator in COSTLY else 1
            parts_of_chosen = max(1, min(parts_of_chosen, most))
        # They are listed by data type, so that each day has several.
        share = {name for place, name in enumerate(chosen, start) if has_turn(self._config, place, parts_of_chosen)}
        return tuple(
            case
            for position, case in enumerate(file.cases, start)
            if case.name in share or has_turn(self._config, position, parts)
        )


def choose(config, items):
    """Leave out the tests that have no case to compute."""
    choice = Choice(config)

    def is_wanted(item):
        given = getattr(item, "callspec", None)
        if given is None or not {"file", "backend", "drawer"} <= given.params.keys():
            return True
        return bool(choice.cases(given.params["backend"], given.params["file"], given.params["drawer"]))

    deselect(config, items, is_wanted)
