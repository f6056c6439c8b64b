"""Print the version of onnxruntime that is tested today, for pip: those that pyproject.toml allows have a day in turn.

The environment variable ``ONNXRUNTIME_VERSION``, such as 1.31, names one of them instead.
"""

import datetime as dt
import os
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
CHOSEN = "ONNXRUNTIME_VERSION"


def allowed() -> list[str]:
    """Return the minor versions that the extra ``onnxruntime`` allows, the lowest first."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (requirement,) = (item for item in map(Requirement, extras["onnxruntime"]) if item.name == "onnxruntime")
    bounds = {bound.operator: bound.version.split(".") for bound in requirement.specifier}
    (major, first), (last_major, end) = bounds[">="], bounds["<"]
    assert major == last_major, "versions of one major number have an order by their second number"
    return [f"{major}.{minor}" for minor in range(int(first), int(end))]


def main() -> None:
    versions = allowed()
    chosen = os.environ.get(CHOSEN) or versions[dt.datetime.now(tz=dt.UTC).toordinal() % len(versions)]
    if chosen not in versions:
        sys.exit(f"{CHOSEN} is {chosen!r}; it must be one of {', '.join(versions)}")
    print(f"onnxruntime=={chosen}.*")


if __name__ == "__main__":
    main()
