"""What the tests are worth: deliberate faults, put into a copy of the package one at a time, and which are found.

``python -m spec_tests.labs.faults --depth=quick [NAME …]`` runs the tests that concern each fault, up to the first
failure.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import cache_from_source
from pathlib import Path

from spec_tests.labs.faults.faults import FAULTS

ROOT = Path(__file__).parents[3]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".coverage*", ".hypothesis")
PASSED, FAILED, NOT_COLLECTED, NONE_CHOSEN = 0, 1, 2, 5
"""What pytest ends with; anything else is no answer."""
OUTCOMES = {PASSED: "MISSED", FAILED: "found", NOT_COLLECTED: "found", NONE_CHOSEN: "MISSED, no test has its turn"}
LONGEST = 300
"""Seconds; a fault may keep tests from ending, which is noticed, too."""


def holder(root, fault):
    """The one file of the package, or of the examples, that has the text which a fault replaces."""
    paths = [*sorted((root / "webnn_py").rglob("*")), *sorted((root / "examples").iterdir())]
    files = [path for path in paths if path.suffix in {".py", ".wgsl", ".js"}]
    found = [path for path in files for _ in range(path.read_text(encoding="utf-8").count(fault.old))]
    if len(found) != 1:
        raise SystemExit(f"{fault.name}: {fault.old!r} is found {len(found)} times, not once; update the fault")
    if found[0].suffix == ".py":
        _check_parses(fault, found[0])
    return found[0]


def _check_parses(fault, path):
    """Any test finds a file that cannot be imported."""
    try:
        ast.parse(path.read_text(encoding="utf-8").replace(fault.old, fault.new))
    except SyntaxError as error:
        raise SystemExit(f"{fault.name}: leaves {path.name} no Python ({error}); update the fault") from error


def what_happens(root, fault, options):
    """What the tests that concern a fault do with it: "found", or "MISSED"."""
    path = holder(root, fault)
    text = path.read_text(encoding="utf-8")
    _write(path, text.replace(fault.old, fault.new))
    tests = [str(test) for pattern in fault.tests for test in sorted(root.glob(pattern))]
    if not tests:
        raise SystemExit(f"{fault.name}: there are no tests {fault.tests}; update the fault")
    chosen = ["-k", fault.only] if fault.only else []
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *options, *chosen, *tests]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    try:
        run = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"found, after {LONGEST} s without an end"
    finally:
        _write(path, text)
    if run.returncode not in OUTCOMES:
        raise SystemExit(f"{fault.name}: pytest ended with {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return OUTCOMES[run.returncode]


def _write(path, text):
    """Change a file, and forget what was compiled of it: texts of one second and one length look alike."""
    path.write_text(text, encoding="utf-8")
    Path(cache_from_source(path)).unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which faults (default: all)")
    parser.add_argument("--depth", choices=["quick", "full"], default="quick")
    parser.add_argument("--seed", help="for pytest")
    parser.add_argument("--check", action="store_true", help="only look whether every fault has its place")
    arguments = parser.parse_args()
    for fault in FAULTS:
        holder(ROOT, fault)
    unknown = set(arguments.names) - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"no such faults: {', '.join(sorted(unknown))}")
    if arguments.check:
        return
    options = [f"--depth={arguments.depth}", *([f"--seed={arguments.seed}"] if arguments.seed else [])]
    missed, chosen = [], [fault for fault in FAULTS if not arguments.names or fault.name in arguments.names]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "copy")
        shutil.copytree(ROOT, root, ignore=LEFT_OUT)
        for fault in chosen:
            outcome = what_happens(root, fault, options)
            sys.stdout.write(f"{fault.name}: {outcome}\n")
            sys.stdout.flush()
            missed += [fault.name] if outcome.startswith("MISSED") else []
    sys.stdout.write(f"{len(chosen) - len(missed)} of {len(chosen)} found\n")


if __name__ == "__main__":
    main()
