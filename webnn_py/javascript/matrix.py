"""Results by operator and data type, as far as the names of files and sub-tests tell."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from webnn_py.descriptors import DATA_TYPES
from webnn_py.javascript.expectations import Judged, Verdict
from webnn_py.javascript.summary import Run
from webnn_py.operators.registry import OPERATORS

NOT_SAID = "not said"
OTHER = "not of one operator"

Cell = Counter[Verdict]

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_BY_LOWER_NAME = {operator.spec_name.lower(): operator.spec_name for operator in OPERATORS.values()}


def operator_of(file: str, name: str) -> str:
    """The operator that a sub-test is about: from its variant, its own name, or its file's."""
    variant = re.search(r"[?&]op=(\w+)", file)
    words = [variant[1]] if variant else [*_WORD.findall(name)[:4], _stem(file)]
    for word in words:
        if word.lower() in _BY_LOWER_NAME:
            return _BY_LOWER_NAME[word.lower()]
    return OTHER


def _stem(file: str) -> str:
    return file.partition("?")[0].rpartition("/")[2].partition(".")[0].replace("_", "")


def data_type_of(name: str) -> str:
    """The first data type that a sub-test's name mentions."""
    return next((word for word in _WORD.findall(name) if word in DATA_TYPES), NOT_SAID)


def matrix(run: Run) -> Mapping[str, Mapping[str, Cell]]:
    """Verdicts counted by operator, category by category, and by data type."""
    cells: defaultdict[str, defaultdict[str, Cell]] = defaultdict(lambda: defaultdict(Counter))
    for one in run.every():
        cells[operator_of(one.file, one.name)][data_type_of(one.name)][one.verdict] += 1
    order = [*_BY_LOWER_NAME.values(), OTHER]
    return {operator: cells[operator] for operator in order}


def columns() -> list[str]:
    """The columns of the matrix."""
    return [*DATA_TYPES, NOT_SAID]


def failures(run: Run) -> list[Judged]:
    """Everything that did not simply pass, the unexpected first."""
    return sorted(
        (one for one in run.every() if one.verdict != "pass"),
        key=lambda one: (one.verdict == "expected failure", one.file, one.name),
    )
