"""Run the proposed tests in a browser, and record what it makes of each.

``python -m spec_tests.wpt_proposed --browser PATH [--checkout WPT]`` writes ``verdicts.json`` and the page
``docs/proposed_tests.md``. Here they run as other files do: ``webnn-py wpt CHECKOUT --newer spec_tests/wpt_proposed``.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from spec_tests.wpt_proposed import verdicts
from spec_tests.wpt_proposed.browser import results_of


def main(arguments):
    """Run all files, and write what was found."""
    parser = argparse.ArgumentParser(prog="python -m spec_tests.wpt_proposed", description=__doc__)
    parser.add_argument("--browser", type=Path, required=True, metavar="PATH")
    parser.add_argument("--checkout", type=Path, help="of web-platform-tests, for its testharness.js")
    options = parser.parse_args(arguments)
    version, found = results_of(options.browser, options.checkout, verdicts.paths())
    verdicts.write(version, found)
    counts = Counter(status for tests in found.values() for status, _ in tests.values())
    print(f"{version}: {', '.join(f'{count} {status}' for status, count in counts.items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
