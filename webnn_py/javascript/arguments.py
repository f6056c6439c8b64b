"""The command lines of the commands that run JavaScript; nothing heavy is imported for them."""

import argparse
import os
from pathlib import Path
from typing import Final

from webnn_py.core.api.experiments import known
from webnn_py.core.device import registry
from webnn_py.extensions.browser_limits import NAMES as BROWSERS
from webnn_py.tracing.trace_file import check_trace_file

BROWSER_HELP: Final = f"run it as this browser would accept it: {', '.join(BROWSERS)}"

EXPERIMENTAL_HELP: Final = f"let the program try a proposal: {', '.join(known())}"

CHECK_HELP: Final = {
    "text": "report redundant work and leaks on stderr",
    "json": "the same as JSON",
    "error": "the same as text, and exit with status 1 if there are findings",
}

PORTABILITY_HELP: Final = {
    "text": "report on stderr which calls would fail in which browser, and why",
    "json": "the same as JSON",
}

TRACE_HELP: Final = (
    "write a trace of the timelines: .html is a self-contained page for any browser; .json is "
    "for Perfetto (ui.perfetto.dev) and chrome://tracing"
)


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands."""
    wpt = commands.add_parser("wpt", help="run web-platform-tests from a checkout")
    wpt.add_argument("checkout", type=Path, metavar="CHECKOUT", help="a checkout of web-platform-tests")
    wpt.add_argument("files", metavar="FILE", nargs="*", help="test files or folders (default: all of webnn/)")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wpt.add_argument("--jobs", type=positive, default=processors, metavar="N", help="number of files run at a time")
    wpt.add_argument(
        "--device",
        choices=["cpu", "gpu", "npu"],
        default="cpu",
        help="device whose variants of files run (default: %(default)s)",
    )
    wpt.add_argument(
        "--report", type=Path, action="append", default=[], metavar="FILE", help="write .json or .xml (JUnit)"
    )
    wpt.add_argument(
        "--expected", type=Path, metavar="FILE", help="list of expected failures (default: the one shipped)"
    )
    wpt.add_argument("--idl", type=Path, metavar="FILE", help="bind this .idl or .bs file, not the checkout's IDL")
    wpt.add_argument(
        "--compatibility",
        choices=["auto", "none", "wpt-2025-03", "wpt-2026"],
        default="auto",
        help="deviations of the tests from the specification; auto: by the age of the checkout",
    )
    wpt.add_argument(
        "--newer",
        type=Path,
        metavar="FOLDER",
        help="folder of the same layout, whose files replace or join those of the checkout",
    )
    wpt.add_argument("--trace", type=_folder, metavar="FOLDER", help="write a trace of each test file there")
    wpt.add_argument("--timeout-multiplier", type=float, default=1.0, metavar="X", help="factor for every time limit")
    wpt.add_argument("--backend", choices=registry.names(), default="numpy", help="device (default: %(default)s)")
    node = commands.add_parser("node", help="run a Node program that has navigator.ml")
    node.add_argument(
        "program",
        nargs="*",
        metavar="PROGRAM",
        help="a program's file, or a command, with its arguments: app.mjs, -- npx vitest run",
    )
    node.add_argument("--web-worker", action="store_true", help="present the program to libraries as a Web Worker")
    node.add_argument(
        "--backend",
        choices=registry.names(),
        help="device of its contexts (default: the one that create_context() takes in Python: a GPU, else onnxruntime "
        "if it is installed, else numpy)",
    )
    _add_realm_options(node)
    pack = commands.add_parser("npm-pack", help="write an npm package by which Node programs import webnn_py")
    pack.add_argument("folder", type=_folder, metavar="FOLDER", help="folder to write the .tgz package to")
    for parser in (wpt, node):
        parser.add_argument(
            "--experimental", choices=known(), action="append", default=[], metavar="NAME", help=EXPERIMENTAL_HELP
        )


def _add_realm_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a program's API."""
    parser.add_argument(
        "--graph-cache",
        type=Path,
        metavar="FOLDER",
        help="let the program save graphs there and load them; without it MLContext has no such methods",
    )
    parser.add_argument("--trace", type=trace_file, metavar="FILE", help=TRACE_HELP)
    # Options of their own, since one whose value may be left out would take the program for it.
    for form, text in CHECK_HELP.items():
        spelled = ["--check"] if form == "text" else []
        parser.add_argument(*spelled, f"--check={form}", dest="check", action="store_const", const=form, help=text)
    browsers = parser.add_mutually_exclusive_group()  # what one refuses would hide the rest from the other
    browsers.add_argument("--browser", choices=BROWSERS, metavar="NAME", help=BROWSER_HELP)
    for form, text in PORTABILITY_HELP.items():
        spelled = ["--portability"] if form == "text" else []
        browsers.add_argument(
            *spelled, f"--portability={form}", dest="portability", action="store_const", const=form, help=text
        )
    parser.add_argument(
        "--compatibility",
        choices=["none", "wpt-2026"],
        default="wpt-2026",
        help="follow web-platform-tests and browsers, or the specification alone: none (default: %(default)s)",
    )


def trace_file(text: str) -> Path:
    """Return a file that a trace can be written to."""
    try:
        check_trace_file(Path(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def positive(text: str) -> int:
    """Return a whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1")
    return number


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no folder")
    return path
