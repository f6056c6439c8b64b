"""A graph of nodes as JSON and bytes: for devices that have no form of their own for what they have compiled.

Values are numbered: inputs, then constants, then the results of the nodes in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.operators.declaration import of_operands
from webnn_py.devices.composites.by_name import operator_of
from webnn_py.devices.content_keys import ContentKey
from webnn_py.devices.saved_code import Bytes, SavedCode, UnusableFileError
from webnn_py.saved_graphs.record import as_json, from_json

FORM: Final = "nodes"


def to_saved(graph: Graph, contents_of: Callable[[Constant], np.ndarray[Any, Any]]) -> SavedCode:
    """Write a graph down.

    Args:
        graph: its nodes in an order in which they can run.
        contents_of: the bytes of a constant, C-contiguous.
    """
    constants = graph.constants
    numbers: dict[Value, int] = {value: number for number, value in enumerate([*graph.inputs.values(), *constants])}
    nodes = []
    for node in graph.nodes:
        operands = of_operands(node.operands, numbers.__getitem__)
        options = {
            name: to_saved(value, contents_of).document if isinstance(value, Graph) else value
            for name, value in node.options.items()
        }
        nodes.append([node.operator.name, operands, options, [*map(as_json, node.outputs)], node.label])
        for result in node.results:
            numbers[result] = len(numbers)
    document = {
        "inputs": [[name, *as_json(value.descriptor)] for name, value in graph.inputs.items()],
        "constants": [[*as_json(value.descriptor), _hexadecimal(value.key)] for value in constants],
        "nodes": nodes,
        "outputs": [[name, numbers[value]] for name, value in graph.outputs.items()],
    }
    return SavedCode(FORM, document, tuple(_bytes(contents_of(value)) for value in constants))


def _hexadecimal(key: Hashable | None) -> str | None:
    try:
        return key.digest.hex() if isinstance(key, ContentKey) else None
    except ReferenceError:  # of another array than the constant's, which is gone
        return None


def _bytes(array: np.ndarray[Any, Any]) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def from_saved(code: SavedCode) -> Graph:
    """Return the graph that was written down; its constants are views of the blobs.

    Raises:
        UnusableFileError: this is no graph of nodes.
    """
    if code.form != FORM:
        raise UnusableFileError(f"it holds {code.form!r}, not nodes")
    document = code.document
    inputs = {name: Input(from_json(descriptor), name) for name, *descriptor in document["inputs"]}
    values: list[Value] = list(inputs.values())
    for (*written, key), blob in zip(document["constants"], code.blobs, strict=True):
        descriptor = from_json(written)
        data = np.frombuffer(blob, descriptor.data_type).reshape(descriptor.shape)
        values.append(Constant(descriptor, data, None if key is None else ContentKey(data, bytes.fromhex(key))))
    nodes = []
    for name, operands, options, outputs, label in document["nodes"]:
        node = Node(
            operator_of(name),
            of_operands(_with_tuples(operands), values.__getitem__),
            _options(options),
            tuple(map(from_json, outputs)),
            label,
        )
        nodes.append(node)
        values += node.results
    return Graph(inputs, {name: values[number] for name, number in document["outputs"]}, tuple(nodes))


def _options(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as conversions leave them. The step of a loop is a graph without constants."""
    read = _with_tuples(written)
    steps = {name: from_saved(SavedCode(FORM, value, ())) for name, value in read.items() if isinstance(value, dict)}
    return read | steps


def _with_tuples(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return operands or options as nodes have them: JSON has no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
