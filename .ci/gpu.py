"""Test and measure the WebGPU device on another machine, which may be offline, and say in one summary how it went.

Here, for a machine with Python 3.12 that has numpy, onnx and torch already::

    python .ci/gpu.py pack wheels --python 3.12 --without numpy onnx

There, in a copy of the repository with the folder ``wheels``::

    python .ci/gpu.py run wheels --out results [--wpt-vectors FOLDER] [--only tests|benchmarks] [--tests PATH …]

Nothing is installed outside a temporary folder. Needs a Vulkan driver and the loader (Debian and Ubuntu: libvulkan1).
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEST_TOOLS = ("pytest", "pytest-trio", "pytest-xdist", "hypothesis")
PLUGINS = ("pytest_trio.plugin", "_hypothesis_pytestplugin", "xdist.plugin")
WORKERS = 14
PEER = "onnxruntime-webgpu"
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (17, 24, 27, 28, 31, 34)] + ["manylinux2014_x86_64"]
TESTS = [
    "spec_tests/on_wgpu",
    "spec_tests/operators",
    "spec_tests/wpt/test_vectors.py",
    "spec_tests/script_timeline",
    "spec_tests/device",
    "spec_tests/device_timeline",
    "spec_tests/runtime",
    "spec_tests/saved_graphs",
    "spec_tests/pictures",
    "spec_tests/tracing",
]
ADAPTER = """
from webnn_py.devices.wgpu import adapters
adapter = adapters.choose("default", software=True)
print(adapter.summary if adapter else "no adapter")
"""


def pack(folder: Path, python: str, without: list[str]) -> None:
    """Download what the tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["onnx"], PEER]
    wanted += [item for item in extras["test"] if re.split(r"[>=<\[]", item)[0] in TEST_TOOLS]
    folder.mkdir(parents=True, exist_ok=True)
    platforms = [f"--platform={name}" for name in PLATFORMS]
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", f"--python-version={python}"]
    subprocess.run([*download, *platforms, f"--dest={folder}", *wanted], check=True)
    for wheel in folder.glob("*.whl"):
        if wheel.name.split("-")[0].lower().replace("_", "-") in without:
            wheel.unlink()
    size = sum(wheel.stat().st_size for wheel in folder.glob("*.whl"))
    print(f"{len(list(folder.glob('*.whl')))} wheels, {size / 2**20:.0f} MiB")


def run(wheels: Path, out: Path, only: str | None, depth: str, tests: list[str]) -> bool:
    """Run tests side by side, with arguments for pytest, then benchmarks; returns whether the tests passed."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as site:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
        subprocess.run([*install, f"--target={site}", *map(str, sorted(wheels.glob("*.whl")))], check=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([site, str(ROOT)]), "PYTHONUNBUFFERED": "1"}
        lines = [f"# {_output([sys.executable, '-c', ADAPTER], environment)}"]
        passed = True
        if only != "benchmarks":
            words, passed = _tests(out, depth, tests, environment)
            lines += ["", *words]
        if only != "tests":
            lines += ["", *_benchmarks(out, environment)]
    summary = "\n".join(lines)
    (out / "summary.md").write_text(summary + "\n", encoding="utf-8")
    print(f"\n{summary}")
    return passed


def _tests(out: Path, depth: str, tests: list[str], environment: dict[str, str]) -> tuple[list[str], bool]:
    report = out / "tests.xml"
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        f"--depth={depth}",
        f"--numprocesses={WORKERS}",
        "-p",
        "no:cacheprovider",
    ]
    # The plugins that the machine has of its own take no part.
    environment = {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command += [f"-p{plugin}" for plugin in PLUGINS]
    # Other versions of Python and packages than CI's may deprecate more.
    command += [f"--junitxml={report}", "--tb=short", "-W", "ignore::DeprecationWarning", "-k", "gpu", *tests]
    started = time.monotonic()
    code = _logged(command, out / "tests.log", environment, quiet=re.compile(r"^\S+::| (PASSED|SKIPPED|XFAIL) |^$"))
    if not report.exists():
        return [f"tests: pytest ended with {code} and without a report; see tests.log"], False
    cases = list(ET.parse(report).getroot().iter("testcase"))
    failed = [f"{case.get('classname')}::{case.get('name')}" for case in cases if _has(case, "failure", "error")]
    skipped = sum(_has(case, "skipped") for case in cases)
    words = f"tests: {len(cases) - len(failed) - skipped} passed, {len(failed)} failed, {skipped} skipped or expected"
    listed = [f"* failed: {name}" for name in failed]
    return [f"{words} ({time.monotonic() - started:.0f} s)", *listed], code == 0 and not failed


def _has(case: ET.Element, *names: str) -> bool:
    return any(case.find(name) is not None for name in names)


def _benchmarks(out: Path, environment: dict[str, str]) -> list[str]:
    log = out / "benchmarks.log"
    command = [sys.executable, "-m", "spec_tests.labs.benchmarks.gpu", f"--json={out / 'benchmarks.json'}"]
    code = _logged(command, log, environment)
    if code:
        return [f"benchmarks: ended with {code}; see benchmarks.log"]
    return [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]


def _logged(command: list[str], log: Path, environment: dict[str, str], quiet: re.Pattern[str] | None = None) -> int:
    """Run a command in the repository; what it says goes to a file and, but for ``quiet`` lines, to the terminal."""
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            file.flush()
            if quiet is None or quiet.search(line) is None:
                print(line, end="", flush=True)
        return process.wait()


def _output(command: list[str], environment: dict[str, str]) -> str:
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return result.stdout.strip() or result.stderr.strip()[-500:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="download wheels")
    packing.add_argument("folder", type=Path)
    packing.add_argument("--python", default="3.12", help="the other machine's Python (default: %(default)s)")
    packing.add_argument("--without", nargs="*", default=[], help="packages that the other machine has")
    running = commands.add_parser("run", help="test and measure")
    running.add_argument("folder", type=Path, help="with the wheels")
    running.add_argument("--out", type=Path, required=True, help="a folder for logs, reports and the summary")
    running.add_argument("--wpt-vectors", type=Path, help="web-platform-tests' cases as data")
    running.add_argument("--only", choices=["tests", "benchmarks"])
    running.add_argument("--depth", choices=["quick", "full", "thorough"], default="full", help="of the tests")
    running.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="which (default: all of a GPU)")
    options = parser.parse_args()
    if options.command == "pack":
        pack(options.folder, options.python, options.without)
    else:
        vectors = [] if options.wpt_vectors is None else [f"--wpt-vectors={options.wpt_vectors.resolve()}"]
        tests = [*options.tests, *vectors]
        if not run(options.folder.resolve(), options.out.resolve(), options.only, options.depth, tests):
            sys.exit(1)


if __name__ == "__main__":
    main()
