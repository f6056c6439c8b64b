"""The text of a ``.webnn`` file and its parts.

::

    webnn_graph "name" v1 {
      inputs { x: f32[1, 3]; }
      consts { k: f32[3] @bytes([0, 0, 128, 63, …]);  w: f32[3, 9] @weights("w");  half: f32[] @scalar(0.5); }
      nodes { t = matmul(x, w);  [a, b] = split(t, splits=2, axis=1); }
      outputs { a; b; }
    }
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, NoReturn

import attrs

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.message_text import shown

TYPES: Final[Mapping[str, MLOperandDataType]] = {
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "i8": "int8",
    "u8": "uint8",
}
"""The names of data types in the text → the specification's."""

NAMES: Final[Mapping[str, str]] = {data_type: name for name, data_type in TYPES.items()}

IDENTIFIER: Final = re.compile(r"[A-Za-z_/$][A-Za-z0-9_./]*")

DEEPEST: Final = 4
"""How deep lists may be nested."""

_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\r\n]+|#[^\n]*)"
    r"|(?P<string>\"(?:\\.|[^\"\\])*\")"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<annotation>@[a-z]+)"
    rf"|(?P<name>{IDENTIFIER.pattern})"
    r"|(?P<mark>[][{}():;,=])"
)


class WebnnFileError(ValueError):
    """A ``.webnn`` file that cannot be read: where, and what is wrong."""

    __module__ = "webnn_py"  # where it is public


@attrs.frozen
class Name:
    """A name within an argument: of a value, or of an enumeration's member."""

    text: str


@attrs.frozen
class StoredTensor:
    """Bytes of a constant in the file of weights, by their name there."""

    name: str


@attrs.frozen
class ConstantText:
    """A constant: its descriptor, and its bytes, one number for all of its elements, or where the bytes are."""

    descriptor: MLOperandDescriptor
    contents: bytes | int | float | StoredTensor


@attrs.frozen
class CallText:
    """A use of an operator.

    Attributes:
        outputs: the names of its results.
        operator: the specification's name.
        positional: arguments without names.
        named: arguments by the specification's names.
        line: where it is.
    """

    outputs: tuple[str, ...]
    operator: str
    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    line: int


@attrs.frozen
class GraphText:
    """A graph as a file has it."""

    name: str
    inputs: Mapping[str, MLOperandDescriptor]
    constants: Mapping[str, ConstantText]
    calls: tuple[CallText, ...]
    outputs: tuple[str, ...]

    @property
    def has_stored_tensors(self) -> bool:
        """Return whether constants are in the file of weights."""
        return any(isinstance(constant.contents, StoredTensor) for constant in self.constants.values())


class _Reader:
    """Reads the tokens of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self._tokens = self._scan(text)
        self.line = 1
        self.kind, self.text = "", ""
        self.take()

    def _scan(self, text: str) -> Iterator[tuple[str, str, int]]:
        at, line = 0, 1
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                self.line = line
                self.refuse(f"{shown(text[at : at + 20])} is no part of the language")
            kind, token = str(found.lastgroup), found[0]
            if kind != "space":
                yield kind, token, line
            line += token.count("\n")
            at = found.end()
        yield "end", "", line

    def refuse(self, what: str) -> NoReturn:
        """Refuse the text at this line."""
        raise WebnnFileError(f"line {self.line}: {what}")

    def take(self) -> str:
        """Return the token that was met, and go on to the next."""
        taken = self.text
        self.kind, self.text, self.line = next(self._tokens)
        return taken

    def check(self, is_right: bool, wanted: str) -> None:  # noqa: FBT001 - what is checked
        """Refuse the next token unless it is right."""
        if not is_right:
            self.refuse(f"{shown(self.text) if self.text else 'the end'} where {wanted} must be")

    def expect(self, *wanted: str) -> str:
        """Take a token that must be one of those."""
        self.check(self.text in wanted, " or ".join(wanted))
        return self.take()

    def found(self, mark: str) -> bool:
        """Take a token if it is this one."""
        is_found = self.text == mark
        if is_found:
            self.take()
        return is_found

    def name(self) -> str:
        """Take a name."""
        self.check(self.kind == "name", "a name")
        return self.take()

    def new_name(self, taken: Container[str], what: str) -> str:
        """Take a name that none of those taken has."""
        if self.text in taken:
            self.refuse(f"the {what} {self.text} is declared twice")
        return self.name()

    def string(self) -> str:
        """Take a string."""
        self.check(self.kind == "string", "a string")
        return re.sub(r"\\(.)", r"\1", self.take()[1:-1], flags=re.DOTALL)

    def number(self) -> int | float:
        """Take a finite number."""
        self.check(self.kind == "number", "a number")
        if len(self.text) > 400:
            self.refuse("a number has more than 400 digits")
        number = int(self.text) if re.fullmatch(r"-?[0-9]+", self.text) else float(self.text)
        if number in (math.inf, -math.inf):
            self.refuse(f"{self.text} is too large; infinities are written as @bytes")
        self.take()
        return number

    def natural(self) -> int:
        """Take an integer that is not negative."""
        self.check(self.kind != "number" or self.text.isdecimal(), "a number of elements")
        return int(self.number())

    def value(self, depth: int = 0) -> Any:
        """Take the value of an argument."""
        if self.kind == "string":
            return self.string()
        if self.kind == "number":
            return self.number()
        if self.found("["):
            if depth == DEEPEST:
                self.refuse(f"lists are nested more than {DEEPEST} deep")
            items = []
            while not self.found("]"):
                items.append(self.value(depth + 1))
                if self.text != "]":
                    self.expect(",")
            return items
        word = self.name()
        return {"true": True, "false": False, "null": None}.get(word, Name(word))


def read_text(text: str) -> GraphText:
    """Read the text of a file.

    Raises:
        WebnnFileError: it is not of the language.
    """
    reader = _Reader(text)
    reader.expect("webnn_graph")
    name = reader.string()
    if reader.text not in ("v1", "v2"):
        reader.refuse("the version must be v1 or v2")
    reader.take()
    reader.found("@quantized")
    reader.expect("{")
    inputs: dict[str, MLOperandDescriptor] = {}
    constants: dict[str, ConstantText] = {}
    calls: list[CallText] = []
    outputs: dict[str, None] = {}
    while not reader.found("}"):
        block = reader.expect("inputs", "consts", "nodes", "outputs")
        reader.expect("{")
        while not reader.found("}"):
            if block == "inputs":
                _read_input(reader, inputs)
            elif block == "consts":
                _read_constant(reader, constants)
            elif block == "nodes":
                calls.append(_read_call(reader))
            else:
                outputs[reader.new_name(outputs, "output")] = None
                while reader.found(",") or reader.found(";"):
                    pass
    if reader.kind != "end":
        reader.refuse(f"{shown(reader.text)} after the graph")
    return GraphText(name, inputs, constants, tuple(calls), tuple(outputs))


def _read_input(reader: _Reader, inputs: dict[str, MLOperandDescriptor]) -> None:
    name = reader.new_name(inputs, "input")
    reader.expect(":")
    inputs[name] = _read_type(reader)
    reader.expect(";")


def _read_type(reader: _Reader) -> MLOperandDescriptor:
    if reader.kind == "name" and reader.text not in TYPES:
        reader.refuse(f"the data type is {shown(reader.text)}; it must be one of {', '.join(TYPES)}")
    word = reader.name()
    reader.expect("[")
    shape: list[int] = []
    while not reader.found("]"):
        if reader.text == "dyn":
            reader.refuse("a dimension is dynamic; only fixed sizes are read")
        shape.append(reader.natural())
        if reader.text != "]":
            reader.expect(",")
    return MLOperandDescriptor(TYPES[word], tuple(shape))


def _read_constant(reader: _Reader, constants: dict[str, ConstantText]) -> None:
    name = reader.new_name(constants, "constant")
    reader.expect(":")
    descriptor = _read_type(reader)
    contents: bytes | int | float | StoredTensor = StoredTensor(name)
    if reader.kind == "annotation":
        kind = reader.expect("@weights", "@scalar", "@bytes")
        reader.expect("(")
        if kind == "@weights":
            contents = StoredTensor(reader.string())
        elif kind == "@scalar":
            contents = reader.number()
        else:
            items = reader.value()
            if not isinstance(items, list) or not all(type(item) is int and 0 <= item < 256 for item in items):
                reader.refuse("@bytes takes a list of numbers from 0 to 255")
            contents = bytes(items)
        reader.expect(")")
    reader.expect(";")
    constants[name] = ConstantText(descriptor, contents)


def _read_call(reader: _Reader) -> CallText:
    line = reader.line
    if reader.found("["):
        outputs = [reader.name()]
        while not reader.found("]"):
            reader.expect(",")
            outputs.append(reader.name())
    else:
        outputs = [reader.name()]
    reader.expect("=")
    operator = reader.name()
    reader.expect("(")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    while not reader.found(")"):
        value = reader.value()
        if isinstance(value, Name) and reader.found("="):
            if value.text in named:
                reader.refuse(f"the argument {value.text} is given twice")
            named[value.text] = reader.value()
        else:
            positional.append(value)
        if reader.text != ")":
            reader.expect(",")
    reader.expect(";")
    return CallText(tuple(outputs), operator, tuple(positional), named, line)
