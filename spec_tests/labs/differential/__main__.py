"""Play programs here and in a browser, and compare.

``python -m spec_tests.labs.differential --browser PATH --programs 2000 --seed 1``

Generated programs of four kinds (``kinds.py``) are played in this package, on every device that is there,
and in a browser. What differs is explained by ``differences.toml`` or told, with the
smallest program found that shows it; the status is 1 where anything is unexplained. Without ``--browser`` only the
devices are compared with each other.
"""

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from spec_tests.labs.differential import comparison, kinds, players
from spec_tests.support.backends import BACKENDS
from webnn_py.extensions.browser_limits import NAMES, find

MOST_TOLD = 20


def options():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.differential", description=__doc__)
    parser.add_argument(
        "--browser", type=Path, metavar="PATH", help="Chromium with WebNN; without it only this package"
    )
    parser.add_argument("--programs", type=int, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=sorted(kinds.SHARES), action="append", help="only this kind of program")
    parser.add_argument("--profile", choices=[*NAMES, "none"], default=NAMES[0], help="what this package plays")
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="default: each that is there")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write all differences as JSON")
    parser.add_argument("--show", metavar="KIND:NUMBER", help="print one program and end")
    return parser.parse_args()


class Judge:
    """Gathers what differs between two players."""

    def __init__(self, listed):
        self.listed = listed
        self.explained = Counter()
        self.programs = Counter()
        self.unexplained = []
        self.found = defaultdict(set)

    def add(self, program, ours, theirs):
        """Compare the results of a program; the differences that nothing explains."""
        differences = comparison.differences(program, ours, theirs)
        reasons = [comparison.explained(one, self.listed) for one in differences]
        left = [one for one, reason in zip(differences, reasons, strict=True) if reason is None]
        for reason in {reason for reason in reasons if reason is not None}:
            self.explained[reason.name] += 1
            self.found[reason.name].add(program.name)
        self.programs["unexplained" if left else "explained" if differences else "same"] += 1
        if left:
            self.unexplained.append((program, left))


def smallest(candidates, differs):
    """The smallest program of which ``differs`` is true, or None."""
    return next(filter(differs, sorted(candidates, key=lambda one: len(one.source))), None)


def tell(title, judge):
    """Print what two players differ in."""
    counts = judge.programs
    print(
        f"\n{title}: {sum(counts.values())} programs, {counts['same']} the same, {counts['explained']} explained, "
        f"{counts['unexplained']} unexplained"
    )
    for name, count in judge.explained.most_common():
        print(f"  {count:5} {name}")
    for program, left in judge.unexplained[:MOST_TOLD]:
        print(f"\n  {program.name}: {left[0].operator}\n    " + left[0].text.replace("\n", "\n    "))


def with_browser(chosen, profile, programs, ours):
    """Compare with the browser; the judge."""
    judge = Judge(comparison.load())
    browser = players.Browser(chosen.browser)
    began = time.monotonic()
    try:
        for program, result in zip(programs, ours, strict=True):
            judge.add(program, result, browser.play(program))
        print(f"{browser.version}: {time.monotonic() - began:.0f} s, {browser.crashes} crashes")

        def differs(program):
            (here,) = players.play_all([program], "numpy", chosen.profile)
            found = comparison.differences(program, here, browser.play(program))
            return any(comparison.explained(one, judge.listed) is None for one in found)

        for program, _ in judge.unexplained[:MOST_TOLD]:
            least = smallest(kinds.smaller(program, chosen.seed, profile), differs) or program
            print(f"\n--- {program.name}\n{least.source}")
    finally:
        browser.close()
    tell(f"here and in {browser.version}", judge)
    return judge


def main():
    chosen = options()
    chosen.profile = None if chosen.profile == "none" else chosen.profile
    profile = None if chosen.profile is None else find(chosen.profile)
    if chosen.show:
        kind, _, number = chosen.show.partition(":")
        print(kinds.SHARES[kind][0](int(number), chosen.seed, profile).source)
        return 0
    programs = list(kinds.programs(chosen.programs, chosen.seed, profile, chosen.kind))
    backends = chosen.backend or BACKENDS
    first = players.play_all(programs, backends[0], chosen.profile)
    # What the text leaves open may depend on the device, and on the moment.
    left_open = [one for one in comparison.load() if one.right == "open"]
    judges = {}
    for backend in backends[1:]:
        judge = judges[backend] = Judge(left_open)
        results = players.play_all(programs, backend, chosen.profile)
        for program, one, other in zip(programs, first, results, strict=True):
            judge.add(program, one, other)
        tell(f"{backends[0]} and {backend}", judge)
    if chosen.browser is not None:
        judges["browser"] = with_browser(chosen, profile, programs, first)
    if chosen.report is not None:
        told = {
            str(place): {
                "programs": judge.programs,
                "explained": {name: sorted(found) for name, found in judge.found.items()},
                "unexplained": {program.name: [one.text for one in left] for program, left in judge.unexplained},
            }
            for place, judge in judges.items()
        }
        chosen.report.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return 1 if any(judge.unexplained for judge in judges.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
