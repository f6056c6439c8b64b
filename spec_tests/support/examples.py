"""The examples as modules."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name: str) -> ModuleType:
    """Run an example as a module of its own name."""
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def output(*arguments: object, typed: str = "") -> str:
    """Run Python with these arguments, such as the path of an example, and return what it printed.

    Args:
        *arguments: of the program.
        typed: what it reads.
    """
    run = subprocess.run(
        [sys.executable, *map(str, arguments)], input=typed, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
