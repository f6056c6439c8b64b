"""Parts of a model that cannot be imported, in words, with the command's options as ways out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webnn_py.onnx_models import Problem, UnsupportedModelError

NAMED: Final = 3
"""The most subjects of a group that are named."""

GROUPS_SHOWN: Final = 3
"""The most groups in a line."""

IN_OPTIONS: Final = {
    "by input_values": "by --value",
    "by outputs": "by --output",
    "by output_names": "by --output",
    "OnnxModel.load(…, narrow_int64=True)": "--narrow int64",
    "the error's problems has each": "--json has all",
}
"""Ways out, as the library words them and as options of this command."""


def as_json(group: Sequence[Problem]) -> dict[str, Any]:
    """Return problems of one operator and one kind of reason: how many, the first of them, the reason, a way out."""
    return {
        "operator": group[0].operator,
        "count": len(group),
        "subjects": [problem.subject for problem in group[:NAMED]],
        "reason": in_options(group[0].reason),
        "way_out": in_options(group[0].way_out),
    }


def in_options(text: str) -> str:
    """Return a text of the library with the options of the command for its arguments."""
    for words, option in IN_OPTIONS.items():
        text = text.replace(words, option)
    return text


def lines_of(error: UnsupportedModelError) -> Iterator[str]:
    """Yield a line for each kind of problem, as the library words them, those of most nodes first."""
    _title, *lines = str(error).splitlines()
    return (in_options(line.strip()) for line in lines)


def in_one_line(error: UnsupportedModelError) -> str:
    """Return what cannot be imported, in one line."""
    words = "; ".join(list(lines_of(error))[:GROUPS_SHOWN])
    more = len(error.groups) - GROUPS_SHOWN
    return f"{words}; and {more} other reasons, which `webnn-py info` lists" if more > 0 else words
