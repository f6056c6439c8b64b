"""Disagreements that are known, each with its reason and with who is right."""

import tomllib
from pathlib import Path

import attrs


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
    """

    name: str
    operators: frozenset[str]
    places: frozenset[str]
    features: frozenset[str]
    right: str
    reason: str

    def explains(self, one):
        """Return whether a disagreement is this one."""
        return one.operator in self.operators and self.places.issuperset(one.odd) and self.features <= one.features


def load():
    """The list."""
    content = tomllib.loads(Path(__file__).with_name("differences.toml").read_text(encoding="utf-8"))
    sets = ("operators", "places", "features")
    return [
        Known(**{name: frozenset(value) if name in sets else value for name, value in ({"features": []} | one).items()})
        for one in content["difference"]
    ]


def reason_of(one, known):
    """The listed disagreement that one is, or None."""
    return next((item for item in known if item.explains(one)), None)
