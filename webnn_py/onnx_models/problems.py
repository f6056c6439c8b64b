"""Errors of models: malformed ones, and problems of nodes that cannot be converted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs
from google.protobuf.message import Message
from onnx import NodeProto

from webnn_py.core.message_text import visible
from webnn_py.core.operators.rules import Refused

LONGEST_REASON: Final = 1000
LONGEST_NAME: Final = 200
LONGEST_NAME_OF_GROUP: Final = 60
MOST_NAMES: Final = 3
MOST_GROUPS: Final = 30

PARTICULAR: Final = re.compile(r"\[[^\]]*\]|'[^']*'|\d+(\.\d+)?")
"""The parts of a reason that differ between nodes: shapes, labels, names and numbers."""


class RefusedWithWayOut(Refused):
    """A refusal that the caller can do something about.

    Attributes:
        way_out: what, in words; "" for nothing.
    """

    def __init__(self, reason: str, way_out: str) -> None:
        super().__init__(reason)
        self.way_out = way_out


@attrs.frozen
class Problem:
    """A node, input or output that cannot be converted.

    Attributes:
        subject: what is concerned, in words: a node with its operator and opset, an input or an output. Control
            characters of names are escaped here, in the reason and in the way out.
        reason: what was given, and what is allowed.
        operator: the node's operator, with its domain where that is not ONNX's own, as the file has it; "" for inputs
            and outputs.
        name: of the node, with those of the functions and loops that it stands in, as the file has it; of the input or
            the output.
        way_out: what the caller can do about it, in words; "" for nothing.
    """

    subject: str = attrs.field(converter=visible)
    reason: str = attrs.field(converter=visible)
    operator: str = ""
    name: str = ""
    way_out: str = attrs.field(default="", converter=visible)

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}{'; ' if self.way_out else ''}{self.way_out}"


class InvalidModelError(ValueError):
    """The model is malformed; the text names what is wrong, and the node if it is in one.

    Args:
        text: what is wrong; names in it come from the file, so that control characters are escaped.
    """

    def __init__(self, text: str) -> None:
        super().__init__(visible(text))


class UnsupportedModelError(ValueError):
    """The model cannot be converted, or costs more than its limits.

    The text groups the problems found by operator and reason, one group in a line, with how many nodes these are, the
    names of the first three and what the caller can do; it has at most some thirty lines, however large the model is.

    Attributes:
        problems: all of them, one by one.
        groups: them by operator and kind of reason, those of most nodes first.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        self.groups = _grouped(self.problems)
        super().__init__("\n".join(["the model cannot be converted:", *(f"  {line}" for line in _lines(self.groups))]))


def _grouped(problems: Sequence[Problem]) -> tuple[tuple[Problem, ...], ...]:
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for problem in problems:
        kind = problem.operator or problem.subject.partition(" ")[0]
        groups.setdefault((kind, PARTICULAR.sub("#", problem.reason), problem.way_out), []).append(problem)
    return tuple(map(tuple, sorted(groups.values(), key=len, reverse=True)))


def _lines(groups: Sequence[Sequence[Problem]]) -> Iterator[str]:
    """Yield a line for each group."""
    for group in groups[:MOST_GROUPS]:
        yield visible(" ".join(_line(group).split()))
    rest = groups[MOST_GROUPS:]
    if rest:
        yield f"and {len(rest)} more kinds of problem, {sum(map(len, rest))} in all; the error's problems has each"


def _line(group: Sequence[Problem]) -> str:
    first = group[0]
    if len(group) == 1:
        return str(first)
    kind = f"nodes of {first.operator}" if first.operator else f"{first.subject.partition(' ')[0]}s"
    names = ", ".join(repr(shortened(problem.name, LONGEST_NAME_OF_GROUP)) for problem in group[:MOST_NAMES])
    more = ", …" if len(group) > MOST_NAMES else ""
    return str(attrs.evolve(first, subject=f"{len(group)} {kind} ({names}{more})"))


def shortened(text: str, longest: int = LONGEST_REASON) -> str:
    """Return a text, without its middle if it is long."""
    return text if len(text) <= longest else f"{text[: longest // 2]} … {text[-longest // 4 :]}"


def worded(value: object) -> str:
    """Return a name or an attribute's value for a message: never long, however long the value is."""
    if isinstance(value, Message):
        return f"a {type(value).__name__}"
    if isinstance(value, (str, bytes)):
        return shortened(repr(value[:LONGEST_NAME] if len(value) > LONGEST_NAME else value), LONGEST_NAME)
    if isinstance(value, tuple) and len(value) > 20:
        return f"({', '.join(map(worded, value[:20]))}, … of {len(value)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(worded, value))}{',' if len(value) == 1 else ''})"
    return shortened(repr(value))


def node_name(node: NodeProto) -> str:
    """Return the name of a node; of a nameless one, its operator and first output."""
    return node.name or f"{node.op_type} of {next(filter(None, node.output), '')}"
