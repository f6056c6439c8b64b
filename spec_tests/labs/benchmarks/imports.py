"""``python -m spec_tests.labs.benchmarks.imports``: how long ``import webnn_py`` takes, next to ``import numpy, trio``.

Fresh interpreters in turn, with compiled bytecode; medians of wall time, less that of an interpreter that imports
nothing.
"""

import os
import subprocess
import sys
import tempfile
from statistics import median
from time import perf_counter

from spec_tests.labs.benchmarks.measure import parser

IMPORTS = {"nothing": "pass", "numpy, trio": "import numpy, trio", "webnn_py": "import webnn_py"}


def seconds(code: str, environment: dict[str, str]) -> float:
    """Return the wall time of a fresh interpreter that runs the code."""
    began = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return perf_counter() - began


def main() -> None:
    arguments = parser("imports", __doc__)
    arguments.add_argument("--rounds", type=int, default=21, help="interpreters for each import (default: 21)")
    rounds = arguments.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        for code in IMPORTS.values():
            seconds(code, environment)  # compiles
        taken: dict[str, list[float]] = {name: [] for name in IMPORTS}
        for _ in range(rounds):
            for name, code in IMPORTS.items():
                taken[name].append(seconds(code, environment))
    medians = {name: median(values) for name, values in taken.items()}
    alone, package = (medians[name] - medians["nothing"] for name in ("numpy, trio", "webnn_py"))
    print(f"numpy, trio: {alone * 1e3:.0f} ms; webnn_py with them: {package * 1e3:.0f} ms; ratio {package / alone:.2f}")


if __name__ == "__main__":
    main()
