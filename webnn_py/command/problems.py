"""Parts of a model that cannot be imported, grouped: the operator, how many nodes, the first of them, the reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from webnn_py.onnx_models import UnsupportedModelError

NAMED: Final = 3
"""The most subjects of a group that are named."""

GROUPS_SHOWN: Final = 3
"""The most groups in a line."""


IN_OPTIONS: Final = {
    "by input_values": "by --value",
    "by outputs": "by --output",
    "by output_names": "by --output",
    "OnnxModel.load(…, narrow_int64=True)": "--narrow int64",
}
"""Ways out, as the library words them and as options of this command."""


@attrs.frozen
class ProblemGroup:
    """Problems of one operator with one kind of reason.

    Attributes:
        operator: with its domain where that is not ONNX's own; "" for inputs and outputs.
        count: how many there are.
        subjects: the first of them.
        reason: of the first, what was given, and what is allowed.
        way_out: what can be done about it; "" for nothing.
    """

    operator: str
    count: int
    subjects: tuple[str, ...]
    reason: str
    way_out: str


def groups_of(error: UnsupportedModelError) -> list[ProblemGroup]:
    """Return the problems by operator and kind of reason, those of most nodes first."""
    return [
        ProblemGroup(
            problems[0].operator,
            len(problems),
            tuple(problem.subject for problem in problems[:NAMED]),
            _in_options(problems[0].reason),
            _in_options(problems[0].way_out),
        )
        for problems in error.groups
    ]


def _in_options(text: str) -> str:
    for words, option in IN_OPTIONS.items():
        text = text.replace(words, option)
    return text


def in_one_line(error: UnsupportedModelError) -> str:
    """Return what cannot be imported, in one line."""
    groups = groups_of(error)
    words = "; ".join(
        f"{group.subjects[0]}{f' and {group.count - 1} more' if group.count > 1 else ''}: {group.reason}"
        f"{f' ({group.way_out})' if group.way_out else ''}"
        for group in groups[:GROUPS_SHOWN]
    )
    more = f"; and {len(groups) - GROUPS_SHOWN} other reasons" if len(groups) > GROUPS_SHOWN else ""
    return f"{words}{more}"


def refusal(path: Path, error: UnsupportedModelError) -> str:
    """Return why a model cannot be run, in one line."""
    return f"{path} cannot be run here: {in_one_line(error)}; `webnn-py info` lists all"
