"""The commands ``webnn-py wpt``, ``node`` and ``npm-pack``."""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import trio

import webnn_py
from webnn_py.core.api.ml import open_ml
from webnn_py.core.errors import NotSupportedError
from webnn_py.errors import leaves
from webnn_py.extensions.browser_limits import NAMES, find
from webnn_py.extensions.portability import PortabilityReport
from webnn_py.javascript import checkout, descriptions, expectations, npm_package, reports, worker
from webnn_py.javascript.compatibility import MODES, WPT_2025_03, WPT_2026, Compatibility
from webnn_py.javascript.node_files import PACKAGE, own_node
from webnn_py.javascript.node_program import SERVED, NodeProgram, require_pipes, run_command, serve_parent
from webnn_py.javascript.progress import Progress
from webnn_py.javascript.proposals import with_proposals
from webnn_py.javascript.results import FileResult
from webnn_py.javascript.summary import Run, line
from webnn_py.javascript.words import say
from webnn_py.javascript.wpt_run import HARNESS_SCRIPT, IDL_FILE, Settings
from webnn_py.tracing.checks import Check
from webnn_py.tracing.trace_file import TraceFileError

AUTO = "auto"


def run(options: argparse.Namespace) -> int:
    """Run one of the commands; see :mod:`arguments` for their command lines."""
    if options.command == "npm-pack":
        return npm_pack(options)
    try:
        require_pipes()
        if options.command == "wpt":
            own_node()
        if options.backend is not None:
            trio.run(_require_backend, options.backend)
    except NotSupportedError as error:
        return _refuse(options.command, error)
    return {"node": node, "wpt": wpt}[options.command](options)


async def _require_backend(backend: str) -> None:
    async with open_ml() as ml:
        await ml.create_context(backend=backend)


def _report(options: argparse.Namespace) -> PortabilityReport | None:
    """Return a report of what would fail in browsers; None where it was not asked for."""
    return PortabilityReport(map(find, NAMES)) if options.portability else None


def _checked(checks: list[Check] | None, form: str, status: int) -> int:
    """Report what is wrong with a program that has ended, and return the status."""
    for check in checks or ():
        say(check.text(form), sys.stderr)
        if form == "error" and check.findings:
            status = status or 1
    return status


def node(options: argparse.Namespace) -> int:
    """Run a Node program and return its status, or serve the one that has started this process."""
    report = _report(options)
    program = NodeProgram(
        options.backend,
        graph_cache=options.graph_cache,
        trace=options.trace,
        browser=options.browser,
        portability=report,
        compatibility=MODES[options.compatibility],
        experimental=tuple(options.experimental),
        checks=None if options.check is None else [],
        web_worker=options.web_worker,
    )
    status = 1
    try:
        if options.program:
            status = run_command(program, options.program)
        elif (folder := os.environ.get(SERVED)) is not None:
            serve_parent(program, Path(folder))
            status = 0
        else:
            status = _refuse("node", ValueError("name a program or a command: webnn-py node app.mjs"))
    except* (FileNotFoundError, NotSupportedError) as errors:
        status = _refuse("node", next(leaves(errors)))
    except* TraceFileError as errors:
        say(f"webnn-py node: {next(leaves(errors))}", sys.stderr)
    if report is not None:
        as_json = options.portability == "json"
        for line_of_table in [json.dumps(report.as_json(), indent=2)] if as_json else report.lines():
            say(line_of_table, sys.stderr)
    return _checked(program.checks, options.check, status)


def npm_pack(options: argparse.Namespace) -> int:
    """Write the npm package, and print its path."""
    say(str(npm_package.write(options.folder)))
    return 0


def wpt(options: argparse.Namespace) -> int:
    """Run web-platform-tests; the status is 0 when nothing unexpected happened."""
    root = options.checkout
    try:
        if not (root / HARNESS_SCRIPT).is_file():
            raise FileNotFoundError(f"{root} is no checkout of web-platform-tests: it has no {HARNESS_SCRIPT}")
        tests = _find(options)
        for path in options.report:
            reports.check(path)
        settings = _settings(options, root)
        expected = expectations.load(
            options.expected or expectations.SHIPPED,
            settings.compatibility.name,
            settings.backend,
            settings.experimental,
        )
    except (OSError, ValueError) as error:
        return _refuse("wpt", error)
    finished = _run(settings, tests, expected, options)
    for path in options.report:
        reports.write(finished, path)
    _tell(finished)
    return 0 if finished.as_expected else 1


def _find(options: argparse.Namespace) -> list[checkout.TestFile]:
    """Return the files to run: what is given of newer files, and of the checkout what those do not replace.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if options.newer is None:
        return checkout.find(options.checkout, options.files, options.device)
    found = {}
    for name in options.files or [checkout.FOLDER]:
        newer = checkout.find(options.newer, [name], options.device, missing=())
        older = checkout.find(options.checkout, [name], options.device, missing=()) if options.files else []
        replaced = {test.path for test in newer}
        found.update({test.id: test for test in [*newer, *(test for test in older if test.path not in replaced)]})
        if not newer and not older:
            raise FileNotFoundError(f"{name}: no test file in {options.newer} or {options.checkout}")
    return list(found.values())


def _refuse(command: str, error: BaseException) -> int:
    say(f"webnn-py {command}: {error}", sys.stderr)
    return 2


def _settings(options: argparse.Namespace, root: Path) -> Settings:
    idl, description = _api(options, root)
    compatibility = _mode(options.compatibility, idl)
    return Settings(
        root=root,
        newer=options.newer,
        description=with_proposals(compatibility.adapted(description), options.experimental),
        idl=idl,
        backend=options.backend,
        compatibility=compatibility,
        timeout_multiplier=options.timeout_multiplier,
        traces=options.trace,
        experimental=tuple(options.experimental),
    )


def _api(options: argparse.Namespace, root: Path) -> tuple[str, dict[str, Any]]:
    """The IDL and its description: of the file given, of the newer files or the checkout, else of the specification."""
    path = options.idl or (options.newer or root) / IDL_FILE  # newer files know nothing of the checkout's older IDL
    parser = root / descriptions.PARSER
    if options.idl is None and not (path.is_file() and parser.is_file()):
        return "", descriptions.of_specification()
    idl = descriptions.read_idl(path)
    return idl, descriptions.from_idl(idl, parser)


def _mode(name: str, idl: str) -> Compatibility:
    """Return the compatibility mode; left to itself, the one that the age of the checkout's IDL asks for."""
    if name != AUTO:
        return MODES[name]
    return WPT_2025_03 if "roundingType" in idl and "outputShapeRounding" not in idl else WPT_2026


def _run(
    settings: Settings,
    tests: list[checkout.TestFile],
    expected: expectations.Expectations,
    options: argparse.Namespace,
) -> Run:
    facts = _facts(settings, options)
    for name, value in facts.items():
        say(f"{name:>14}: {value}")
    since = time.monotonic()
    files: list[FileResult] = []
    judged: dict[str, list[expectations.Judged]] = {}
    with Progress(len(tests), sys.stderr) as progress:
        for result in worker.run_files(settings, tests, jobs=options.jobs):
            files.append(result)
            judged[result.id] = expectations.judge(result, expected)
            progress.add(result, judged[result.id])
    files.sort(key=lambda result: result.id)
    return Run(facts, files, judged, time.monotonic() - since)


def _facts(settings: Settings, options: argparse.Namespace) -> dict[str, str]:
    from importlib.metadata import version  # noqa: PLC0415 - slow to import, and only for this

    mode = settings.compatibility
    return {
        "webnn_py": webnn_py.__version__,
        "backend": settings.backend,
        "Node": f"{PACKAGE} {version(PACKAGE)}",
        "checkout": _revision(settings.root),
        "IDL": str(options.idl or (IDL_FILE if settings.idl else "the specification's, as shipped")),
        "compatibility": f"{mode.name}: {', '.join(mode.switches())}" if mode.switches() else mode.name,
        "variants": f"?{options.device}",
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "jobs": str(options.jobs),
    }


def _revision(root: Path) -> str:
    """Return the commit of the checkout, or its folder if it has none of its own."""
    if not (root / ".git").exists():
        return root.name
    answer = subprocess.run(  # noqa: S603 - a fixed command line
        ["git", "-C", str(root), "log", "-1", "--format=%H %cs"],  # noqa: S607 - the user's git
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or root.name


def _tell(run: Run) -> None:
    """Say what was unexpected, one by one, then the totals."""
    for one in run.unexpected():
        say(f"{one.verdict.upper()}  {one.file}  {one.name}\n    {one.status}: {one.message or ''}")
        if one.reason:
            say(f"    listed as: {one.reason}")
    say(line(run))
