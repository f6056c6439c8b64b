"""``python -m spec_tests.labs.benchmarks [NAME…]``: run the benchmarks by hand and print Markdown tables of medians."""

import platform
import sys

import trio

import webnn_py
from spec_tests.labs.benchmarks.measure import Result, parser, table
from spec_tests.labs.benchmarks.numpy_device import BENCHMARKS, peak_memory


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
    options = arguments.parse_args()
    results = trio.run(_run, options.names or list(BENCHMARKS))
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}\n")
    print(table(results))


if __name__ == "__main__":
    main()
