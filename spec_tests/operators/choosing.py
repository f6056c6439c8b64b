"""Which cases a run computes on the GPU; ``chosen.json``, which :mod:`.choose_cases` writes, has those of every day."""

import json
from pathlib import Path

from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.support.depth import amount, deselect, has_turn, is_full

CHOSEN = Path(__file__).with_name("chosen.json")
PARTS = 61
"""Of the cases that are not chosen, one in so many is computed each day; a prime, so that every kind has its turn."""

PARTS_AT_FULL_DEPTH = 11
"""Likewise at full depth, of those that are not drawn as written."""


class Choice:
    """What is computed, for one run of pytest."""

    def __init__(self, config):
        self._config = config
        self._chosen = json.loads(CHOSEN.read_text(encoding="utf-8"))
        self._positions = {}

    def cases(self, backend, file, drawer):
        """The cases of a file that are computed on a backend, drawn in one way."""
        at_full_depth = 1 if drawer == "as_written" else PARTS_AT_FULL_DEPTH
        parts = amount(self._config, quick=PARTS, full=at_full_depth, thorough=1)
        if backend != "wgpu" or parts == 1:
            return file.cases
        chosen = self._chosen.get(file.operator, {}).get(drawer, [])
        start = sum(map(ord, file.operator + drawer))  # or all operators would have their turns on the same days
        return tuple(
            case
            for position, case in enumerate(file.cases, start)
            if case.name in chosen
            or (backend, file.operator, case.name) in EXCEPTIONS
            or has_turn(self._config, position, parts)
        )


def choose(config, items):
    """Leave out the cases that are not computed."""
    if is_full(config):
        return
    choice, names = Choice(config), {}

    def is_wanted(item):
        given = getattr(item, "callspec", None)
        if given is None or not {"file", "case", "backend"} <= given.params.keys():
            return True
        backend, file, case = (given.params[name] for name in ("backend", "file", "case"))
        if (backend, file.operator) not in names:
            names[backend, file.operator] = {case.name for case in choice.cases(backend, file, "as_written")}
        return case.name in names[backend, file.operator]

    deselect(config, items, is_wanted)
