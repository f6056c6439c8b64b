"""Compare checkouts of the specification and of web-platform-tests with what is recorded here.

``python -m spec_tests.drift CHECKOUT`` takes a folder with ``index.bs``, ``--wpt CHECKOUT`` one of web-platform-tests.
It finds algorithms and steps that are new, changed or gone, with the places that do them here; members of the IDL;
operators; rows of limits; test files, and with ``--report REPORT.json`` of ``webnn-py wpt`` their sub-tests. The status
is 0 when nothing has changed, 1 when something has, 2 when a checkout cannot be read.

``--record COMMIT`` takes the text as checked up to that commit, ``--record-wpt COMMIT`` the tests, with ``--report``.
"""

import argparse
import sys
from pathlib import Path

from spec_tests.drift import page, recorded
from spec_tests.drift.comparison import of_specification, of_wpt


def main(arguments):
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spec_tests.drift", description=__doc__.partition("\n\n")[0])
    parser.add_argument("checkout", type=Path, help="of the specification: a folder with index.bs")
    parser.add_argument("--wpt", type=Path, metavar="CHECKOUT", help="of web-platform-tests: a folder with webnn")
    parser.add_argument("--report", type=Path, help="of webnn-py wpt on that checkout, for the sub-tests")
    parser.add_argument("--record", metavar="COMMIT", help="take the text as checked")
    parser.add_argument("--record-wpt", metavar="COMMIT", help="take the tests as checked")
    options = parser.parse_args(arguments)
    if (options.report is not None or options.record_wpt is not None) and options.wpt is None:
        parser.error("--report and --record-wpt go with --wpt")
    if options.record_wpt is not None and options.report is None:
        parser.error("--record-wpt needs --report, whose sub-tests it records")
    since = ", ".join(recorded.sources())
    try:
        source = (options.checkout / "index.bs").read_text(encoding="utf-8")
        changes = of_specification(source)
        if options.wpt is not None:
            changes += of_wpt(options.wpt, options.report)
        if options.record is not None:
            recorded.record_specification(options.checkout / "index.bs", options.record)
        if options.record_wpt is not None:
            recorded.record_wpt(options.wpt, options.report, options.record_wpt)
    except (OSError, ValueError) as error:
        print(f"python -m spec_tests.drift: {error}", file=sys.stderr)
        return 2
    for change in changes:
        print(change)
    count = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
    print(f"{count} since {since}" if changes else "nothing has changed")
    if options.record is not None or options.record_wpt is not None:
        page.write()
        return 0
    return int(bool(changes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
