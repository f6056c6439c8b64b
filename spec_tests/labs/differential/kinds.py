"""The kinds of programs, and the share of each."""

from itertools import count, cycle, islice

from spec_tests.labs.differential import calls, edges, events, graphs

SHARES = {
    "graphs": (graphs.generate, 4),
    "calls": (calls.generate, 3),
    "edges": (edges.generate, 2),
    "events": (events.generate, 1),
}
"""By name: the generator, and how many of ten programs it writes."""


def programs(amount, seed, profile, chosen=None):
    """Draw this many programs of a seed, the same each time."""
    shares = {name: SHARES[name] for name in chosen or SHARES}
    numbers = {name: count() for name in shares}
    turns = [name for name, (_, share) in shares.items() for _ in range(share)]
    for name in islice(cycle(turns), amount):
        yield shares[name][0](next(numbers[name]), seed, profile)


def smaller(program, seed, profile):
    """Programs that compute part of what a program does."""
    if program.kind != "graphs":
        return
    for name in program.steps:
        yield graphs.with_outputs(program.number, seed, profile, [name])
