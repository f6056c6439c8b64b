"""A builder's graph as a ``.webnn`` file, with its longer constants in a file of weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.message_text import shown
from webnn_py.core.operators.declaration import spec_name_of
from webnn_py.drawn_graphs import elements_of
from webnn_py.webnn_files import weights
from webnn_py.webnn_files.text import IDENTIFIER, NAMES
from webnn_py.written_files import written_whole

MOST_INLINE: Final = 256
"""The most bytes of a constant in the text itself."""

KEYWORDS: Final = frozenset({"true", "false", "null"})


def write_files(graph: Graph, path: Path) -> None:
    """Write a graph; the file of weights has the same name with ``.safetensors``, and there is none without weights.

    Raises:
        ValueError: a name is none in the text, or a constant's contents are a device's; nothing is written.
        OSError: a file cannot be written.
    """
    writer = _GraphWriter(graph)
    encoded = ("\n".join(writer.lines(path.stem)) + "\n").encode()
    files = [path.with_suffix(".safetensors")] if writer.arrays else []
    with written_whole(*files, path) as fresh:
        if writer.arrays:
            weights.write(fresh[0], writer.arrays)
        fresh[-1].write_bytes(encoded)


class _GraphWriter:
    """Names the values of a graph, and writes its text.

    Args:
        graph: a builder's.

    Attributes:
        arrays: the constants of the file of weights, by name; complete when all lines are written.

    Raises:
        ValueError: as for :func:`write_files`, at once or while lines are written.
    """

    def __init__(self, graph: Graph) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._graph = graph
        taken = [*graph.inputs, *graph.outputs]
        for wanted in taken:
            if IDENTIFIER.fullmatch(wanted) is None or wanted in KEYWORDS:
                raise ValueError(
                    f"{shown(wanted)} cannot be a name in a .webnn file: names have letters, digits, _, . and /, and "
                    "do not begin with a digit or ."
                )
            if taken.count(wanted) > 1:
                raise ValueError(f"an input and an output are called {shown(wanted)}; a .webnn file has one of a name")
        self._new = (name for name in (f"v{number}" for number in count()) if name not in set(taken))
        self._names: dict[Value, str] = {value: name for name, value in graph.inputs.items()}
        for name, value in graph.outputs.items():
            self._names.setdefault(value, name)

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the text; ``name`` is the graph's in it."""
        graph = self._graph
        yield f"webnn_graph {_quoted(name)} v1 {{"
        if graph.inputs:
            yield from _block("inputs", (f"{key}: {_type(item.descriptor)};" for key, item in graph.inputs.items()))
        if graph.constants:
            yield from _block("consts", map(self._constant, graph.constants))
        copies = [(key, self._names[value]) for key, value in graph.outputs.items() if self._names[value] != key]
        yield from _block(
            "nodes", [*map(self._call, graph.nodes), *(f"{key} = identity({source});" for key, source in copies)]
        )
        yield f"  outputs {{ {' '.join(f'{key};' for key in graph.outputs)} }}"
        yield "}"

    def _name(self, value: Value) -> str:
        if value not in self._names:
            self._names[value] = next(self._new)
        return self._names[value]

    def _constant(self, constant: Constant) -> str:
        array, name = elements_of("save_webnn", constant), self._name(constant)
        if array.nbytes <= MOST_INLINE:
            contents = f"@bytes([{', '.join(map(str, array.tobytes()))}])"
        else:
            self.arrays[name] = array.reshape(constant.descriptor.shape)
            contents = f"@weights({_quoted(name)})"
        return f"{name}: {_type(constant.descriptor)} {contents};"

    def _call(self, node: Node) -> str:
        positional: list[str] = []
        named: list[str] = []
        for name, parameter in node.operator.parameters.items():
            if name in node.operands:
                operand = node.operands[name]
                names = [self._name(item) for item in (operand if isinstance(operand, tuple) else (operand,))]
                if parameter.required:
                    positional += names
                else:
                    named.append(f"{spec_name_of(name)}={names[0]}")
            elif name in node.options and (value := node.options[name]) != parameter.default:
                named.append(f"{spec_name_of(name)}={_value(value)}")
        if node.label:
            named.append(f"label={_quoted(node.label)}")
        results = [self._name(result) for result in node.results]
        target = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
        return f"{target} = {node.operator.spec_name}({', '.join([*positional, *named])});"


def _block(name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"  {name} {{"
    yield from (f"    {line}" for line in lines)
    yield "  }"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _type(descriptor: MLOperandDescriptor) -> str:
    return f"{NAMES[descriptor.data_type]}[{', '.join(map(str, descriptor.shape))}]"


def _value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case float() if not math.isfinite(value):
            raise ValueError(f"an option is {value}, which .webnn files have no number for")
    return repr(value)
