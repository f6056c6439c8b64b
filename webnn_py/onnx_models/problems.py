"""What is wrong with a model, and what it asks for that cannot be converted."""

from collections.abc import Iterable
from typing import Final

import attrs
from google.protobuf.message import Message
from onnx import NodeProto

LONGEST_REASON: Final = 1000
LONGEST_NAME: Final = 200
MOST_TOLD: Final = 100


@attrs.frozen
class Problem:
    """One thing that cannot be converted.

    Attributes:
        subject: what is concerned, in words: a node with its operator and opset, an input or an output.
        reason: what was given, and what is allowed.
        operator: the node's operator, with its domain where that is not ONNX's own; "" for inputs and outputs.
    """

    subject: str
    reason: str
    operator: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class InvalidModelError(ValueError):
    """The model is malformed; the text names what is wrong, and the node if it is in one."""


class UnsupportedModelError(ValueError):
    """The model cannot be converted, or costs more than its limits; the text tells the problems found, one in a line.

    Attributes:
        problems: the same, one by one; also those beyond the first hundred, which the text only counts.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        told = [f"  {problem}" for problem in self.problems[:MOST_TOLD]]
        more = [f"  and {len(self.problems) - MOST_TOLD} more"] if len(self.problems) > MOST_TOLD else []
        super().__init__("\n".join(["the model cannot be converted:", *told, *more]))


def shortened(text: str, longest: int = LONGEST_REASON) -> str:
    """A text, without its middle if it is long."""
    return text if len(text) <= longest else f"{text[: longest // 2]} … {text[-longest // 4 :]}"


def worded(value: object) -> str:
    """A name or an attribute's value for a message: never long, however long the value is."""
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
    """The name of a node; of a nameless one, its operator and first output."""
    return node.name or f"{node.op_type} of {next(filter(None, node.output), '')}"
