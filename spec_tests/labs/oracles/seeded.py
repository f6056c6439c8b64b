"""Random graphs of all categories that are the same for the same seed, whatever versions there are."""

import itertools

import attrs
import numpy as np

from spec_tests.support.random_graphs import drawer as drawing
from spec_tests.support.random_graphs.programs import CATEGORIES, FREQUENT

TYPES = ("float32", "float32", "float32", "float16", "int32", "int64", "uint32", "int8", "uint8", "uint64")
MOST_CALLS = 6


class UnwantedError(Exception):
    """The call is not to be drawn."""


@attrs.define(eq=False)
class SeededDrawer(drawing.Drawer):
    """Draws without hypothesis.

    Attributes:
        rng: where chance comes from.
    """

    rng: np.random.Generator = None

    def choose(self, *items):
        return items[self.rng.integers(len(items))]

    def integer(self, low, high):
        return int(self.rng.integers(low, high, endpoint=True))

    def flag(self):
        return bool(self.rng.integers(2))

    def some(self, items):
        items = list(items)
        return [items[at] for at in self.rng.permutation(len(items))[: self.rng.integers(len(items) + 1)]]

    def permutation(self, items):
        items = list(items)
        return [items[at] for at in self.rng.permutation(len(items))]

    def grow(self, begin):
        """Add what ``begin`` draws, unless a call of it is unwanted."""
        kept = [list(part) for part in (self.sources, self.calls, self.values)]
        read = set(self.read)
        try:
            begin(self)
        except UnwantedError:
            self.sources, self.calls, self.values = kept
            self.read = read
        self.following = None


def drawn(number, seed):
    """Return a drawer that has drawn at least one call."""
    categories = list(CATEGORIES.values())
    first = categories[number % len(categories)]
    for attempt in itertools.count():
        rng = np.random.default_rng([seed, number, attempt])
        drawer = SeededDrawer(None, TYPES, int(rng.choice([60, 200, 600])), rng=rng)
        drawer.grow(first)
        for _ in range(rng.integers(MOST_CALLS)):
            drawer.grow(drawer.choose(first, *categories, *FREQUENT))
        if drawer.calls:
            return drawer
    raise AssertionError
