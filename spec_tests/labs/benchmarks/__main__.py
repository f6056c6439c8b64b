"""``python -m spec_tests.labs.benchmarks [NAME…]``: run the benchmarks by hand and print Markdown tables of medians."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import trio

import webnn_py
from spec_tests.labs.benchmarks.measure import Result, parser, table
from spec_tests.labs.benchmarks.numpy_device import BENCHMARKS, peak_memory


def _pywebnn(interpreter: str) -> dict[str, float]:
    """Return what pywebnn takes for the same things, under its own interpreter."""
    script = Path(__file__).with_name("pywebnn_peer.py")
    run = subprocess.run([interpreter, str(script)], check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


async def _run(names: list[str]) -> list[Result]:
    results = []
    async with webnn_py.open_ml() as ml:
        for name in names:
            print(f"{name} …", file=sys.stderr)
            results.append(await BENCHMARKS[name](ml))
        await peak_memory(ml)
    return results


def main() -> None:
    arguments = parser("", __doc__)
    arguments.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which to run (default: all)")
    arguments.add_argument("--pywebnn", metavar="PYTHON", help="a Python 3.12 interpreter that has pywebnn")
    options = arguments.parse_args()
    results = trio.run(_run, options.names or list(BENCHMARKS))
    if options.pywebnn:
        peer = _pywebnn(options.pywebnn)
        results = [
            Result(r.name, {**r.seconds, "pywebnn": peer[r.name]} if r.name in peer else r.seconds, r.limit)
            for r in results
        ]
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}\n")
    print(table(results))


if __name__ == "__main__":
    main()
