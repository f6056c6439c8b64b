"""What of a model cannot be imported, grouped: the operator, how many nodes, the first of them, the reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from webnn_py.onnx_models import Problem, UnsupportedModelError

NAMED: Final = 3
"""So many of a group are named."""

GROUPS_TOLD: Final = 3
"""So many groups fit a line."""


@attrs.frozen
class ProblemGroup:
    """Problems of one operator with one reason.

    Attributes:
        operator: with its domain where that is not ONNX's own; "" for inputs and outputs.
        count: how many there are.
        subjects: the first of them.
        reason: what was given, and what is allowed.
    """

    operator: str
    count: int
    subjects: tuple[str, ...]
    reason: str


def grouped(problems: Iterable[Problem]) -> list[ProblemGroup]:
    """The problems by operator and reason, those with most nodes first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        groups.setdefault((problem.operator, problem.reason), []).append(problem.subject)
    found = [
        ProblemGroup(operator, len(subjects), tuple(subjects[:NAMED]), reason)
        for (operator, reason), subjects in groups.items()
    ]
    return sorted(found, key=lambda group: -group.count)


def refusal(path: Path, error: UnsupportedModelError) -> str:
    """Why a model cannot be run, in one line."""
    groups = grouped(error.problems)
    told = "; ".join(
        f"{group.subjects[0]}{f' and {group.count - 1} more' if group.count > 1 else ''}: {group.reason}"
        for group in groups[:GROUPS_TOLD]
    )
    more = f"; and {len(groups) - GROUPS_TOLD} other reasons" if len(groups) > GROUPS_TOLD else ""
    return f"{path} cannot be run here: {told}{more}; `webnn-py info` lists all"
