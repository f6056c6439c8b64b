"""A builder's graph as a ``.webnn`` file, with its longer constants in a file of weights."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.message_text import shown
from webnn_py.core.operators.declaration import spec_name_of
from webnn_py.drawn_graphs import elements_of
from webnn_py.webnn_files import weights
from webnn_py.webnn_files.text import IDENTIFIER, CallText, ConstantText, GraphText, Name, StoredTensor, written
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
    text = GraphWriter(graph, path.stem)
    encoded = ("\n".join(written(text.graph)) + "\n").encode()
    files = [path.with_suffix(".safetensors")] if text.arrays else []
    with written_whole(*files, path) as fresh:
        if text.arrays:
            weights.write(fresh[0], text.arrays)
        fresh[-1].write_bytes(encoded)


class GraphWriter:
    """Names the values of a graph, and describes it by records of the text.

    Args:
        graph: a builder's.
        name: its name in the text.

    Attributes:
        graph: the records.
        arrays: the constants of the file of weights, by name.

    Raises:
        ValueError: as for :func:`write_files`.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._names: dict[Value, str] = {}
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
        self._names.update({value: input_name for input_name, value in graph.inputs.items()})
        copies: list[CallText] = []
        for output_name, value in graph.outputs.items():
            if value in self._names:
                copies.append(CallText((output_name,), "identity", (Name(self._names[value]),), {}))
            else:
                self._names[value] = output_name
        constants = {self._name(constant): self._constant(constant) for constant in graph.constants}
        calls = [self._call(node) for node in graph.nodes]
        inputs = {input_name: value.descriptor for input_name, value in graph.inputs.items()}
        self.graph = GraphText(name, inputs, constants, (*calls, *copies), tuple(graph.outputs))

    def _name(self, value: Value) -> str:
        if value not in self._names:
            self._names[value] = next(self._new)
        return self._names[value]

    def _constant(self, constant: Constant) -> ConstantText:
        array = elements_of("save_webnn", constant)
        if array.nbytes <= MOST_INLINE:
            return ConstantText(constant.descriptor, array.tobytes())
        name = self._name(constant)
        self.arrays[name] = array.reshape(constant.descriptor.shape)
        return ConstantText(constant.descriptor, StoredTensor(name))

    def _call(self, node: Node) -> CallText:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in node.operator.parameters.items():
            if name in node.operands:
                operand = node.operands[name]
                names = [Name(self._name(item)) for item in (operand if isinstance(operand, tuple) else (operand,))]
                if parameter.required:
                    positional += names
                else:
                    named[spec_name_of(name)] = names[0]
            elif name in node.options and (value := node.options[name]) != parameter.default:
                named[spec_name_of(name)] = value
        if node.label:
            named["label"] = node.label
        return CallText(tuple(map(self._name, node.results)), node.operator.spec_name, tuple(positional), named)
