"""The steps of the specification's algorithms, as they are recorded, and the reasons why some need no code or tests."""

import json
import re
import tomllib
from pathlib import Path

import attrs

FILE = Path(__file__).with_name("steps.json")
REASONS = Path(__file__).with_name("reasons.toml")


@attrs.frozen
class Step:
    """A recorded step.

    Attributes:
        identifier: its name in comments; it stays when other steps change.
        number: its place in the algorithm now.
        digest: of its text.
        summary: its first words.
        form: the form that it shares with steps of other operators, "" for none.
        refuses: whether it throws, or returns failure.
    """

    identifier: str
    number: str
    digest: str
    summary: str
    form: str
    refuses: bool


@attrs.frozen
class Algorithm:
    """A recorded algorithm, with its section's anchor."""

    name: str
    anchor: str
    digest: str
    steps: tuple[Step, ...]

    @property
    def is_operator(self):
        """Return whether it is one of the builder's operators, or shared by several of them."""
        return any(step.form for step in self.steps)

    def step(self, identifier):
        """Return a step, or None."""
        return next((step for step in self.steps if step.identifier == identifier), None)


def _read():
    if not FILE.exists():
        return "", {}
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    algorithms = {
        one["name"]: Algorithm(one["name"], one["anchor"], one["digest"], tuple(Step(*step) for step in one["steps"]))
        for one in recorded["algorithms"]
    }
    return recorded["source"], algorithms


SOURCE, ALGORITHMS = _read()


def algorithm(name):
    """Return an algorithm by its name; ``MLGraphBuilder.`` may be left out. None if there is none."""
    return ALGORITHMS.get(name) or ALGORITHMS.get(f"MLGraphBuilder.{name}")


def selected(found, text):
    """Return the steps that a list such as ``1, 3-5.2`` names, without those below them.

    Raises:
        ValueError: the algorithm has no such step, or a range ends before it begins.
    """
    order = [step.identifier for step in found.steps]
    steps = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        for name in (first, last or first):
            if name not in order:
                raise ValueError(f"{found.name} has no step {name!r}")
        begin, end = order.index(first), order.index(last or first) + 1
        if begin >= end:
            raise ValueError(f"{found.name}: the range {part.strip()} ends before it begins")
        steps += found.steps[begin:end]
    return steps


def above(identifier):
    """Return the identifiers of the steps that a step is below, the nearest first."""
    parts = re.sub(r"[a-z]+$", "", identifier).split(".")
    return [".".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]


def reasons():
    """Return why steps need no code, by algorithm and identifier."""
    found = {}
    for entry in tomllib.loads(REASONS.read_text(encoding="utf-8"))["step"]:
        for name in entry["algorithms"]:
            for step in selected(algorithm(name), entry["steps"]):
                found[algorithm(name).name, step.identifier] = entry["reason"]
    return found
