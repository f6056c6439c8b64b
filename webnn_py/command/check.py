"""``webnn-py check``: redundant work of a Python program, and what it never destroys."""

import argparse
import runpy
import sys
import traceback
from typing import Any

from webnn_py.command.failures import BadInputError
from webnn_py.command.printing import print_lines
from webnn_py.core.api import ml as api
from webnn_py.tracing import checks as tracing


def check(options: argparse.Namespace) -> int:
    """Run a Python program as the main one, and report what was found in each of its ``open_ml()`` blocks.

    Returns:
        The program's status; with ``--error`` 1 instead of 0 where something was found. What it raises is its own
        traceback, and 1.
    """
    if not options.script.is_file():
        raise BadInputError(f"there is no program {options.script}")
    checks: list[tracing.Check] = []

    def begin(ml: Any) -> None:
        made = tracing.check(ml)
        made.__enter__()
        checks.append(made)

    before, path = sys.argv, sys.path[:]
    sys.argv, sys.path[:0] = [str(options.script), *options.arguments], [str(options.script.resolve().parent)]
    api.on_opened.append(begin)
    try:
        runpy.run_path(str(options.script), run_name="__main__")
        status = 0
    except SystemExit as ended:
        status = _status_of(ended)
    except Exception:  # noqa: BLE001 - the program's own
        traceback.print_exc()
        status = 1
    finally:
        api.on_opened.remove(begin)
        sys.argv, sys.path[:] = before, path
        for made in checks:
            made.__exit__(None, None, None)
            print_lines(made.text("json" if options.json else "text").splitlines(), sys.stderr)
    return status or int(options.error and any(made.findings for made in checks))


def _status_of(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    print_lines([str(ended.code)], sys.stderr)
    return 1
