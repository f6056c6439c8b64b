"""The recorded results of the proposed tests in a browser, and the page that lists them."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent
FILE = FOLDER / "verdicts.json"
PAGE = FOLDER.parents[1] / "docs" / "proposed_tests.md"
BEGIN, END = "<!-- verdicts -->\n", "<!-- end of verdicts -->\n"


def paths():
    """Return the test files, from the root."""
    return [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.glob("webnn/*/*.https.any.js"))]


def read():
    """Return the browser, and by file and sub-test its status and message."""
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    return recorded["browser"], recorded["files"]


def write(browser, files):
    """Record what a browser made of them, and write the page."""
    text = json.dumps({"browser": browser, "files": files}, indent=0, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def table():
    """Return the tables: of files, and of what does not pass."""
    browser, files = read()
    rows = [f"| file | sub-tests | pass in {browser} |", "|---|---|---|"]
    failures = ["| file | sub-test | there |", "|---|---|---|"]
    for path, tests in files.items():
        name = path.removeprefix("webnn/")
        passed = [test for test, (status, _) in tests.items() if status == "PASS"]
        rows.append(f"| `{name}` | {len(tests)} | {len(passed)} |")
        for test, (status, message) in tests.items():
            if status != "PASS":
                words = " ".join((message or status).split())[:160].replace("|", "\\|").replace("<", "&lt;")
                failures.append(f"| `{name}` | {test.replace('|', '/')} | {words} |")
    return "\n".join([*rows, "", "What does not pass there:", "", *failures, ""])


def page():
    """Return the page with its tables."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]
