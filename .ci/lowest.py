"""Print the lowest versions that pyproject.toml allows of what the package needs at run time, for pip.

With the name of an extra: the lowest minor versions of what that brings itself.
"""

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extra = sys.argv[1] if len(sys.argv) > 1 else None
    needed = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    for requirement in map(Requirement, needed):
        if requirement.name != project["name"]:
            (lowest,) = (bound.version for bound in requirement.specifier if bound.operator in {">=", "=="})
            print(f"{requirement.name}=={lowest}{'' if extra is None else '.*'}")


if __name__ == "__main__":
    main()
