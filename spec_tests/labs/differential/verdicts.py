"""Compare a browser profile's verdicts with the browser's own.

``python -m spec_tests.labs.differential.verdicts --browser PATH --graphs 500 --seed 1``

Random graphs are played here with the browser's profile, and in the browser. Every other graph is drawn without regard
to the profile, so that most of these are refused; of the others the profile refuses a call now and then. A verdict is
that a graph runs, or at what stage it is refused with which error. The status is 1 where fewer than 99 % agree.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from spec_tests.labs.differential import graphs, players
from webnn_py.extensions.browser_limits import NAMES, find

WANTED = 0.99


def options():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.differential.verdicts", description=__doc__)
    parser.add_argument("--browser", type=Path, metavar="PATH", required=True, help="Chromium with WebNN")
    parser.add_argument("--graphs", type=int, default=500, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=NAMES, default=NAMES[0])
    return parser.parse_args()


def drawn(amount, seed, profile):
    """Draw this many graphs of a seed, every other one not limited to the profile."""
    return [graphs.generate(number, seed, None if number % 2 else profile) for number in range(amount)]


def verdict(result):
    """Return the verdict on a program: that it runs, or where it ends with which error."""
    return "runs" if "outputs" in result else f"{result['stage']} {result['error']}"


def tally(pairs):
    """Count pairs of verdicts: all, those that agree on whether the graph runs, and those that are the same."""
    count = Counter()
    for ours, theirs in pairs:
        count["all"] += 1
        count["agree"] += (ours == "runs") == (theirs == "runs")
        count["same"] += ours == theirs
        count["run"] += theirs == "runs"
    return count


def main():
    chosen = options()
    programs = drawn(chosen.graphs, chosen.seed, find(chosen.profile))
    here = [verdict(result) for result in players.play_all(programs, "numpy", chosen.profile)]
    browser = players.Browser(chosen.browser)
    try:
        there = [verdict(browser.play(program)) for program in programs]
    finally:
        browser.close()
    pairs = [*zip(here, there, strict=True)]
    for name, picked in (("all", pairs), ("mostly within the profile", pairs[::2]), ("free of it", pairs[1::2])):
        count = tally(picked)
        print(
            f"{name}: {count['all']} graphs, {count['run']} run in {browser.version}; {count['agree']} verdicts agree, "
            f"{count['same']} with stage and error"
        )
    for (ours, theirs), program in zip(pairs, programs, strict=True):
        if ours != theirs:
            print(f"  {program.name}: {ours} here, {theirs} there")
    return 0 if tally(pairs)["agree"] >= WANTED * len(pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
