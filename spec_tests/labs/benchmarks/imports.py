"""``python -m spec_tests.labs.benchmarks.imports``: how long ``import webnn_py`` takes, next to ``import numpy, trio``.

Fresh interpreters in turn, with compiled bytecode; medians of wall time, less that of an interpreter that imports
nothing.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial

import trio

from spec_tests.labs.benchmarks.measure import compare, parser

IMPORTS = {"nothing": "pass", "numpy, trio": "import numpy, trio", "webnn_py": "import webnn_py"}


def main() -> None:
    arguments = parser("imports", __doc__)
    arguments.add_argument("--rounds", type=int, default=21, help="interpreters for each import (default: 21)")
    rounds = arguments.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        interpreters = {
            name: partial(subprocess.run, [sys.executable, "-c", code], check=True, env=environment)
            for name, code in IMPORTS.items()
        }
        compared = partial(compare, "", interpreters, runs=rounds, warm_up=1)  # the first one compiles
        medians = trio.run(compared).seconds
    alone, package = (medians[name] - medians["nothing"] for name in ("numpy, trio", "webnn_py"))
    print(f"numpy, trio: {alone * 1e3:.0f} ms; webnn_py with them: {package * 1e3:.0f} ms; ratio {package / alone:.2f}")


if __name__ == "__main__":
    main()
