"""What a model asks for that cannot be converted."""

from collections.abc import Iterable

import attrs


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


class UnsupportedModelError(ValueError):
    """The model cannot be converted; the text tells every problem found, one in a line.

    Attributes:
        problems: the same, one by one.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(["the model cannot be converted:", *(f"  {problem}" for problem in self.problems)]))
