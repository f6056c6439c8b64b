"""The module that builds a graph, and its TypeScript declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.operators.declaration import Parameter
from webnn_py.unique_names import Names
from webnn_py.version import __version__
from webnn_py.web_export.literals import argument, descriptor, record, text_of
from webnn_py.web_export.names import RESERVED, identifier
from webnn_py.web_export.weights import WeightsFile

LONGEST_LINE: Final = 110
"""A call that is longer has its options on lines of their own."""

TAKEN: Final = ("builder", "constant", "contentsOf", "context", "inputs", "MLGraphBuilder", "weights")
"""The names that ``build()`` itself uses."""

ARRAYS: Final[Mapping[MLOperandDataType, str]] = {
    "float32": "Float32Array",
    "float16": "Float16Array | Uint16Array",
    "int32": "Int32Array",
    "uint32": "Uint32Array",
    "int64": "BigInt64Array",
    "uint64": "BigUint64Array",
    "int8": "Int8Array",
    "uint8": "Uint8Array",
}
"""The JavaScript types of outputs."""


@attrs.frozen
class Module:
    """A module as text.

    Attributes:
        source: its own part, which what runs a graph is written behind.
        declarations: of its types.
        weights: its constants.
    """

    source: str
    declarations: str
    weights: WeightsFile


def module_of(graph: Graph, title: str) -> Module:
    """Write a graph as a module.

    Raises:
        ValueError: a constant's contents are a device's, or there are too many bytes of them.
    """
    weights = WeightsFile()
    body = _Body(weights).written(graph)
    returned = {name: value.descriptor for name, value in graph.outputs.items()}
    taken = {name: value.descriptor for name, value in graph.inputs.items()}
    facts = {
        "title": text_of(title),
        "operators": str(len(graph.nodes)),
        "weightBytes": str(weights.byte_length),
        "writtenBy": text_of(f"webnn_py {__version__}"),
    }
    source = "\n".join(
        [
            f"export const facts = {record(facts)};",
            "",
            *_descriptors("inputs", "What the graph takes, by name.", taken),
            *_descriptors("outputs", "What it returns, by name.", returned),
            "/** Draw the graph and compile it: a promise of an MLGraph. `weights` is what weights.bin contains. */",
            "export async function build(context, weights) {",
            "  const builder = new MLGraphBuilder(context);",
            "  const constant = (dataType, shape, data) =>",
            "    builder.constant({dataType, shape}, contentsOf(weights, dataType, shape, data));",
            *(f"  {line}" for line in body),
            "}",
            "",
        ]
    )
    return Module(source, _declarations(taken, returned), weights)


def _descriptors(name: str, comment: str, descriptors: Mapping[str, MLOperandDescriptor]) -> list[str]:
    members = [f"  {record({key: descriptor(value)})[1:-1]}," for key, value in descriptors.items()]
    return [f"/** {comment} */", f"export const {name} = {{", *members, "};", ""]


class _Body:
    """Yield the lines of ``build()``; a constant stands before its first use."""

    def __init__(self, weights: WeightsFile) -> None:
        self._weights = weights
        self._names = Names((*RESERVED, *TAKEN))
        self._of_value: dict[Value, str] = {}
        self._lines: list[str] = []

    def written(self, graph: Graph) -> list[str]:
        for value in graph.inputs.values():
            self._name(value)
        for node in graph.nodes:
            self._write(node)
        results = {name: self._name(value) for name, value in graph.outputs.items()}
        return [*self._lines, *_call("return builder.build(", [], results)]

    def _name(self, value: Value) -> str:
        if value in self._of_value:
            return self._of_value[value]
        if isinstance(value, Input):
            name = self._names.new(identifier(value.name))
            key = text_of(value.name)
            self._lines.append(f"const {name} = builder.input({key}, inputs[{key}]);")
        else:
            assert isinstance(value, Constant)  # noqa: S101 - results are named before they are used
            name = self._names.new("weight")
            data_type, shape = text_of(value.descriptor.data_type), argument(value.descriptor.shape)
            data = self._weights.argument_of(value)
            self._lines.append(f"const {name} = constant({data_type}, {shape}, {data});")
        self._of_value[value] = name
        return name

    def _write(self, node: Node) -> None:
        given: list[str] = []
        options: dict[str, str] = {}
        for parameter in node.operator.parameters.values():
            value = self._argument(node, parameter)
            if parameter.required:
                assert value is not None  # noqa: S101 - for type checkers
                given.append(value)
            elif value is not None:
                options[parameter.spec_name] = value
        names = [self._names.new(identifier(node.label or node.operator.spec_name)) for _ in node.results]
        self._of_value.update(zip(node.results, names, strict=True))
        target = f"[{', '.join(names)}]" if node.operator.returns_sequence else names[0]
        self._lines += _call(f"const {target} = builder.{node.operator.spec_name}(", given, options)

    def _argument(self, node: Node, parameter: Parameter) -> str | None:
        """Return an argument's expression; None if it is absent or equals the specification's default."""
        operand = node.operands.get(parameter.name)
        if isinstance(operand, tuple):
            return f"[{', '.join(map(self._name, operand))}]"
        if operand is not None:
            return self._name(operand)
        value = node.label if parameter.name == "label" else node.options[parameter.name]
        if value is None:
            return None
        is_default = not parameter.required and parameter.default is not None
        text = argument(value)
        return None if is_default and text == argument(parameter.default) else text


def _call(start: str, given: list[str], options: Mapping[str, str]) -> list[str]:
    line = f"{start}{', '.join([*given, *([record(options)] if options else [])])});"
    if len(line) <= LONGEST_LINE or not options:
        return [line]
    members = [f"  {record({name: value})[1:-1]}," for name, value in options.items()]
    return [f"{start}{', '.join([*given, '{'])}", *members, "});"]


def _declarations(taken: Mapping[str, MLOperandDescriptor], returned: Mapping[str, MLOperandDescriptor]) -> str:
    """Return the part of the declarations that is this graph's."""
    return "\n".join(
        [
            "/** What run() takes, in row-major order. */",
            "export interface Inputs {",
            *(f"  {_member(name, value, 'ArrayBuffer | ')}" for name, value in taken.items()),
            "}",
            "",
            "/** What run() returns, in row-major order. */",
            "export interface Outputs {",
            *(f"  {_member(name, value, '')}" for name, value in returned.items()),
            "}",
            "",
        ]
    )


def _member(name: str, value: MLOperandDescriptor, also: str) -> str:
    return f"{text_of(name)}: {also}{ARRAYS[value.data_type]}; // {value}: {value.element_count:,}"
