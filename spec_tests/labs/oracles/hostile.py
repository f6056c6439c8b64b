"""Data with NaN, infinities and both zeros in between."""

import attrs
import numpy as np

from spec_tests.support.random_graphs.bounds import is_float
from spec_tests.support.random_graphs.program import Source

SPECIAL = {"nan": (np.nan,), "inf": (np.inf, -np.inf), "minus": (-np.inf,), "zero": (0.0, -0.0)}
"""By kind."""


@attrs.frozen(eq=False)
class HostileSource(Source):
    """A graph input or a constant of which some elements are special, where they are floats.

    Attributes:
        kinds: of special elements.
    """

    kinds: tuple[str, ...] = ()

    def data(self, number):
        usual = super().data(number)
        specials = np.array([special for kind in self.kinds for special in SPECIAL[kind]])
        if not is_float(self.value.data_type):
            return usual
        rng = np.random.default_rng([self.seed, number if self.is_input else 0, 1])
        is_special = rng.random(usual.shape) < rng.choice([0.02, 0.3])
        chosen = specials[rng.integers(len(specials), size=usual.shape)]
        return np.where(is_special, chosen.astype(usual.dtype), usual)

    def __str__(self) -> str:
        return f"{super().__str__()}, some {' and '.join(self.kinds)}"
