"""Break each step of the specification, one at a time, and see whether the tests that reach it fail.

``python -m spec_tests.specification.faults`` takes every statement that a comment names and that can be left out by
itself: a check, a loop, a call, an assignment to an object. It leaves it out in a process of its own, and runs the
tests of its steps there, as ``measure`` has recorded them, those of this package and the proposed ones, and its own in
``test_refusals.py``; ``faults.json`` says which fault is found. A statement whose value is used further on cannot be
left out; what it refuses is a check elsewhere. Some recorded tests need ``WEBNN_WPT_VECTORS``.
"""

import argparse
import ast
import contextlib
import gc
import inspect
import json
import os
import signal
import sys
import time
import types
from importlib import import_module
from pathlib import Path

import pytest

from spec_tests.specification import coverage, references, steps
from spec_tests.specification.tracing import statement_at

FILE = Path(__file__).with_name("faults.json")
SECONDS = 60
"""How long the tests of a fault may take; a fault that makes them hang is found."""

NOT_BROKEN = 99

_TIMELINE = "spec_tests/script_timeline"
OF_STATES = (
    f"{_TIMELINE}/test_destroy_table.py",
    f"{_TIMELINE}/test_after_destroy.py",
    f"{_TIMELINE}/test_promises_of_a_lost_context.py",
    f"{_TIMELINE}/test_ordering.py",
    f"{_TIMELINE}/test_build.py",
    "spec_tests/device/test_release.py",
)
"""Tests of what contexts, graphs and buffers do in each of their states."""

ROOT = Path(__file__).parents[2]


class _LeftOut(ast.NodeTransformer):
    """Leaves out the statement that begins on a line; what it names stays known to the compiler."""

    def __init__(self, line):
        self._line = line
        self.done = False

    def visit(self, node):
        if isinstance(node, ast.stmt) and node.lineno == self._line and not self.done:
            self.done = True
            if isinstance(node, ast.If):
                test = ast.copy_location(ast.BoolOp(ast.And(), [node.test, ast.Constant(value=0)]), node.test)
                return ast.copy_location(ast.If(test, node.body, node.orelse), node)
            return ast.copy_location(ast.If(ast.Constant(value=False), [node], []), node)
        return self.generic_visit(node)


def can_be_left_out(node):
    """Return whether nothing that follows a statement needs what it makes."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
    return isinstance(node, ast.If | ast.Expr | ast.For | ast.Delete)


def break_statement(place):
    """Leave a statement out of the running package.

    Raises:
        LookupError: its function is not there.
    """
    path = references.PACKAGE / place.path
    change = _LeftOut(statement_at(str(path), place.line).lineno)
    tree = ast.fix_missing_locations(change.visit(ast.parse(path.read_text(encoding="utf-8"))))
    codes = [*_codes(compile(tree, str(path), "exec"))]
    parts = place.function.split(".")
    for length in range(len(parts), 0, -1):  # one within a function is made anew by each call of that
        name = ".".join(parts[:length])
        functions = [
            one
            for one in gc.get_objects()
            if isinstance(one, types.FunctionType)
            and one.__code__.co_filename == str(path)
            and one.__code__.co_qualname == name
        ]
        for function in functions:
            (function.__code__, *_) = [
                code
                for code in codes
                if code.co_qualname == name and code.co_firstlineno == function.__code__.co_firstlineno
            ]
        if functions:
            return
    raise LookupError(f"{place} is not there")


def _codes(code):
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _codes(constant)


def tests_of(place, steps_of_place):
    """Return the recorded tests of a place's steps, as arguments of pytest; those of objects' states, too."""
    keys = [f"{name} {identifier}" for name, identifier in steps_of_place]
    ours = [test for key in keys for test in coverage.recorded()["ours"].get(key, [0])[1:]]
    proposed = [test.partition(" > ")[0] for key in keys for test in coverage.recorded()["proposed"].get(key, [0])[1:]]
    named = [test for step in steps_of_place for test in coverage.own_tests(*step)]
    named += list(dict.fromkeys(f"spec_tests/{test}" for test in ours))[:4]
    for file in dict.fromkeys(proposed):
        named.append(
            "spec_tests/wpt_proposed/test_proposed.py::test_every_sub_test_passes_in_the_mode_of_the_text"
            f"[webnn/{file}]"
        )
    return [*named[:8], *(() if place.path.startswith("core/operators/") else OF_STATES)]


def outcome(place, tests):
    """Return "found", "not found", or why the fault could not be put there."""
    child = os.fork()
    if child == 0:
        status = NOT_BROKEN
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            break_statement(place)
            status = int(
                pytest.main(["-n0", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:cov", "-k", "not wgpu", *tests])
            )
        os._exit(status)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return {0: "not found", NOT_BROKEN: "could not be broken", 4: "no tests", 5: "no tests"}.get(code, "found")
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "found"


def main(arguments):
    """Break all places, or those of the files that are named."""
    parser = argparse.ArgumentParser(prog="python -m spec_tests.specification.faults", description=__doc__)
    parser.add_argument("paths", nargs="*", help="relative to the package, for example core/api/builder.py")
    options = parser.parse_args(arguments)
    if not coverage.measured():
        parser.error("nothing is measured; run python -m spec_tests.specification.measure first")
    os.chdir(ROOT)
    for path in {place.path for place in references.all_places()}:
        import_module(f"webnn_py.{path.removesuffix('.py').replace('/', '.')}")
    found = json.loads(FILE.read_text(encoding="utf-8")) if options.paths and FILE.exists() else {}
    declarations = set(map(references.declaration, steps.ALGORITHMS.values()))  # each step of those is a part of one
    for place, done in sorted(references.all_places().items()):
        if place in declarations or (options.paths and place.path not in options.paths):
            continue
        if not can_be_left_out(statement_at(str(references.PACKAGE / place.path), place.line)):
            continue
        tests = tests_of(place, done)
        ended = outcome(place, tests) if tests else "no tests"
        names = [f"{name} {identifier}" for name, identifier in done]
        found[f"{place.path} {place.function}: {names[0]}"] = [ended, len(names)]
        print(f"{ended}: {place}: {', '.join(names[:4])}", flush=True)
    FILE.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
