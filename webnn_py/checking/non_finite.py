"""The first node of a graph that produces a NaN or an infinity, found by examining every value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs
import numpy as np
import trio

from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.device.device import Device
from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.in_flight import done
from webnn_py.core.message_text import in_brackets, visible
from webnn_py.core.operators.declaration import of_operands
from webnn_py.devices.long_steps import check_goes_on
from webnn_py.profiling.temporary import compiled, storages

MOST_NODES: Final = 64
MOST_BYTES: Final = 2**26
"""The most nodes, and bytes of results, that are computed and examined together."""


@attrs.frozen
class ValueRange:
    """The range of a tensor's values, and how many are NaN or infinite.

    Attributes:
        name: the operand's name in the operator, or the output's index.
        data_type: its data type.
        shape: its shape.
        minimum: the least finite element; None if there is none.
        maximum: the greatest finite element; None if there is none.
        nans: the number of elements that are NaN.
        infinities: the number of infinite elements.
    """

    __module__ = "webnn_py"  # where it is public

    name: str
    data_type: str
    shape: tuple[int, ...]
    minimum: float | None
    maximum: float | None
    nans: int
    infinities: int

    @classmethod
    def from_array(cls, name: str, array: HostArray) -> ValueRange:
        """Return the range of an array."""
        nans, infinities = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        finite = array[np.isfinite(array)]
        minimum, maximum = (finite.min().item(), finite.max().item()) if finite.size else (None, None)
        return cls(name, array.dtype.name, array.shape, minimum, maximum, nans, infinities)

    def __str__(self) -> str:
        finite = "no finite element" if self.minimum is None else f"{self.minimum:.6g} to {self.maximum:.6g}"
        rare = [f"{count} {what}" for count, what in ((self.nans, "NaN"), (self.infinities, "infinite")) if count]
        return visible(", ".join([f"{self.name} {self.data_type} {list(self.shape)}: {finite}", *rare]))


@attrs.frozen
class NonFinite:
    """The first node that produces a NaN or an infinity from operands without.

    Attributes:
        operator: its name in the specification; "input" or "constant" where a NaN came with the data.
        label: the node's label, or the input's name.
        node: the place of the node among the graph's nodes; None for an input or a constant.
        output: the index of its output.
        index: the first such position in that output, in row-major order.
        value: the value there: NaN, or an infinity.
        result: the range of the output.
        inputs: the ranges of the node's operands.
    """

    __module__ = "webnn_py"  # where it is public

    operator: str
    label: str
    node: int | None
    output: int
    index: tuple[int, ...]
    value: float
    result: ValueRange
    inputs: tuple[ValueRange, ...]

    def __str__(self) -> str:
        label = in_brackets(self.label)
        makes = "brings" if self.node is None else f"(node {self.node}) makes"
        lines = [f"{self.operator}{label} {makes} {self.value} at {list(self.index)}", f"  {self.result}"]
        return "\n".join([*lines, *(f"  {item}" for item in self.inputs)])

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain data for JSON, which has no NaN: ``value`` is text."""
        return attrs.asdict(self) | {"value": str(self.value)}


async def first_non_finite(device: Device, graph: Graph, given: Mapping[str, HostArray]) -> NonFinite | None:
    """Compute every value of a graph, some nodes at a time, and return the first that is not finite.

    Args:
        device: the device to compute on.
        graph: the graph.
        given: the inputs.
    """
    known: dict[Value, HostArray] = {value: given[name] for name, value in graph.inputs.items()}
    last_read = {value: index for index, node in enumerate(graph.nodes) for value in node.inputs}
    for constant in graph.constants:
        known[constant] = await _contents(device, constant)
    found = await trio.to_thread.run_sync(_in_data, known, last_read, limiter=device.limiter)
    begin = 0
    for part in _parts(graph.nodes):
        if found is not None:
            break
        check_goes_on(device)
        known |= await _computed(device, part, known)
        look = partial(_in_nodes, part, begin, known)
        found = await trio.to_thread.run_sync(look, limiter=device.limiter)
        begin += len(part)
        known = {value: array for value, array in known.items() if last_read.get(value, -1) >= begin}
    return found


def _parts(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Yield the nodes in parts: few enough for the results of each to fit on the host and the device."""
    part: list[Node] = []
    byte_length = 0
    for node in nodes:
        own = sum(descriptor.byte_length for descriptor in node.outputs)
        if part and (len(part) == MOST_NODES or byte_length + own > MOST_BYTES):
            yield part
            part, byte_length = [], 0
        part.append(node)
        byte_length += own
    if part:
        yield part


async def _contents(device: Device, constant: Constant) -> HostArray:
    if isinstance(constant.data, Storage):
        return await done(device.backend.read(constant.data))
    assert isinstance(constant.data, np.ndarray)  # noqa: S101 - the builder makes arrays
    return constant.data


async def _computed(device: Device, part: Sequence[Node], known: Mapping[Value, HostArray]) -> dict[Value, HostArray]:
    """Return the results of some nodes, each of them an output of a separate graph, so that none is fused away."""
    inputs: dict[Value, Input] = {}
    current: dict[Value, Value] = {}
    for node in part:
        for value in node.inputs:
            if value not in current and value not in inputs and not isinstance(value, Constant):
                inputs[value] = Input(value.descriptor, str(len(inputs)))
        operands = of_operands(node.operands, lambda value: _current(value, current, inputs))
        same = Node(node.operator, operands, node.options, node.outputs, node.label)
        current.update(zip(node.results, same.results, strict=True))
    outputs = {str(index): value for index, value in enumerate(current.values())}
    given = {graph_input.name: known[value] for value, graph_input in inputs.items()}
    made = {name: value.descriptor for name, value in outputs.items()}
    async with compiled(device, Graph.reaching(outputs)) as handle, storages(device, given, made) as (read, written):
        await done(device.backend.dispatch(handle.compiled, read, written))
        arrays = [await done(device.backend.read(storage)) for storage in written.values()]
    return dict(zip(current, arrays, strict=True))


def _current(value: Value, current: Mapping[Value, Value], inputs: Mapping[Value, Value]) -> Value:
    return current.get(value, inputs.get(value, value))


# --- examining ----------------------------------------------------------------------------------------------------


def _in_data(known: Mapping[Value, HostArray], read: Iterable[Value]) -> NonFinite | None:
    """Return the first NaN of inputs and constants, in the order of reading; infinities there are intended, as masks.

    Args:
        known: the inputs and constants.
        read: the values that nodes read, each once.
    """
    for value in read:
        if value in known and _has(np.isnan, known[value]):
            kind, name = ("input", value.name) if isinstance(value, Input) else ("constant", "")
            return _described(kind, name, None, 0, known[value], np.isnan(known[value]), ())
    return None


def _in_nodes(part: Sequence[Node], begin: int, known: Mapping[Value, HostArray]) -> NonFinite | None:
    """Return the first node of a part that produces a NaN from operands without, or an infinity from finite ones."""
    for index, node in enumerate(part, begin):
        operands = [known[value] for value in node.inputs]
        for output in node.results:
            array = known[output]
            found = _has(np.isnan, array) and not any(_has(np.isnan, operand) for operand in operands)
            where: Any = np.isnan if found else np.isinf
            if not found and not _has(np.isinf, array):
                continue
            if not found and any(_has(np.isnan, operand) or _has(np.isinf, operand) for operand in operands):
                continue
            ranges = tuple(ValueRange.from_array(name, known[value]) for name, value in _named(node))
            name = node.operator.spec_name
            return _described(name, node.label, index, output.index, array, where(array), ranges)
    return None


def _described(
    operator: str,
    label: str,
    node: int | None,
    output: int,
    array: HostArray,
    wrong: Any,
    inputs: tuple[ValueRange, ...],
) -> NonFinite:
    index = tuple(int(place) for place in np.unravel_index(np.argmax(wrong), array.shape))
    result = ValueRange.from_array("output" if node is None or not output else f"output {output}", array)
    return NonFinite(operator, label, node, output, index, float(array[index]), result, inputs)


def _has(test: Any, array: HostArray) -> bool:
    return array.dtype.kind == "f" and bool(test(array).any())


def _named(node: Node) -> Iterator[tuple[str, Value]]:
    """Yield the operands with their names."""
    for name, operand in node.operands.items():
        if isinstance(operand, tuple):
            yield from ((f"{name}[{index}]", value) for index, value in enumerate(operand))
        else:
            yield name, operand
