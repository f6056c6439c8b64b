"""Disagreements that are known, each with its reason and with who is right."""

import tomllib
from pathlib import Path

import attrs

from spec_tests.labs.oracles.roundings import are_the_cause, roundings


@attrs.frozen
class Known:
    """A disagreement that is known.

    Attributes:
        name: what reports call it.
        operators: what computes the value, by names of the specification.
        places: those that may be alone.
        features: data types that the call must have.
        right: who is right.
        reason: why.
        readers: operators that pass a rounded sum on; where there are any, the difference is the rounding of a sum
            before something is added to it, and must be no greater than that explains.
    """

    name: str
    operators: frozenset[str]
    places: frozenset[str]
    features: frozenset[str]
    right: str
    reason: str
    readers: frozenset[str] = frozenset()

    async def explains(self, places, one):
        """Return whether a disagreement, as ``places`` compute it, is this one."""
        if not self.places.issuperset(one.odd):
            return False
        if not self.readers:
            return one.operator in self.operators and self.features <= one.features
        calls = roundings(one.program, self)
        return bool(calls) and await are_the_cause(places, one, calls)


def load():
    """The list."""
    content = tomllib.loads(Path(__file__).with_name("differences.toml").read_text(encoding="utf-8"))
    sets = ("operators", "places", "features", "readers")
    return [
        Known(**{name: frozenset(value) if name in sets else value for name, value in ({"features": []} | one).items()})
        for one in content["difference"]
    ]


async def reason_of(places, one, known):
    """Return the listed disagreement that one is, as ``places`` compute it, or None."""
    for item in known:
        if await item.explains(places, one):
            return item
    return None
