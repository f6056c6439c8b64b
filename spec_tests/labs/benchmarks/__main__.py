"""``python -m spec_tests.labs.benchmarks [NAME…]``: run the benchmarks by hand and print Markdown tables of medians."""

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

import trio

import webnn_py
from spec_tests.labs.benchmarks import operators, timelines
from spec_tests.labs.benchmarks.measure import Result, table

BENCHMARKS = {benchmark.__name__: benchmark for benchmark in (*timelines.BENCHMARKS, *operators.BENCHMARKS)}


def _pywebnn(interpreter: str) -> dict[str, float]:
    """What pywebnn takes for the same things, under its own interpreter."""
    script = Path(__file__).with_name("pywebnn_peer.py")
    run = subprocess.run([interpreter, str(script)], check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


async def _run(names: list[str]) -> list[Result]:
    results = []
    async with webnn_py.open_ml() as ml:
        for name in names:
            print(f"{name} …", file=sys.stderr)
            results.append(await BENCHMARKS[name](ml))
        await operators.peak_memory(ml)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which to run (default: all)")
    parser.add_argument("--pywebnn", metavar="PYTHON", help="a Python 3.12 interpreter that has pywebnn")
    options = parser.parse_args()
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
