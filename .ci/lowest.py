"""Print the lowest versions that pyproject.toml allows of what the package needs at run time, for pip."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    dependencies = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    for requirement in map(Requirement, dependencies):
        (lowest,) = (bound.version for bound in requirement.specifier if bound.operator in {">=", "=="})
        print(f"{requirement.name}=={lowest}")


if __name__ == "__main__":
    main()
