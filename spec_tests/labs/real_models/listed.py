"""The list of real models, ``models.toml``: where each is, what it is given, and what is known of it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import attrs

LIST = Path(__file__).parent / "models.toml"
BOUND = 1e-3
"""The largest difference from onnxruntime that a model may have, relative to an output's largest value."""


@attrs.frozen
class Package:
    """A package that has models.

    Attributes:
        name: the package's name, or the repository's URL.
        version: its version, or the commit.
        licence: what it says of itself.
        registry: "pypi", "npm" or "git".
    """

    name: str
    version: str
    licence: str
    registry: str = "pypi"

    @property
    def folder(self):
        return f"{self.name.rpartition('://')[2].replace('/', '+')}-{self.version}"


@attrs.frozen(kw_only=True)
class Model:
    """A model.

    Attributes:
        package: where it is from.
        file: its path there.
        sha256: of the file.
        inputs: what each input is given, and its shape: "noise 1 3 224 224". What begins with "known" is known while
            building.
        beside: files that it needs beside it, with their SHA-256.
        bound: the largest relative difference from onnxruntime.
        exact: whether it is compared with float64, too, and may be within the bound of that instead.
        options: of ``OnnxModel.load``.
        refused: why it cannot be read.
        rounds: why its outputs may be farther off: what is rounded to few bits on the way may fall to the other side.
            Then they are held to how far onnxruntime's move by that (``sensitivity.py``), and its nodes are compared
            one by one.
        bound_apart: the largest relative difference of a node.
        meaning: what its outputs mean, by ``meanings.py``; "" where that is numbers.
        asked: what inputs it is asked about, as ``questions.py`` has it: "line 1 3 48 320". The others are as above.
    """

    package: Package
    file: str
    sha256: str
    inputs: Mapping[str, str]
    beside: Mapping[str, str] = attrs.field(factory=dict)
    bound: float = BOUND
    exact: bool = False
    options: Mapping[str, bool] = attrs.field(factory=dict)
    refused: str = ""
    rounds: str = ""
    bound_apart: float = BOUND
    meaning: str = ""
    asked: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self):
        return f"{self.package.name.rpartition('/')[2]}-{self.package.version[:7]}/{Path(self.file).name}"


def listed(path=LIST):
    """Return all models of a list; what a package says of inputs holds for those of its models that say nothing."""
    models = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["package"]:
        items = entry.pop("model")
        common = {name: entry.pop(name) for name in ("inputs", "meaning", "asked") if name in entry}
        package = Package(**entry)
        models += [Model(package=package, file=file, **common | item) for file, item in items.items()]
    return models
