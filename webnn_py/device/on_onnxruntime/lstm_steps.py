"""Networks of long short-term memory with integers for weights, which graphs say step by step, as one node each.

Each step quantizes the state by its own range, so that a step is some thirty operators, which take onnxruntime several
times as long as its own operator does, and a build longer still.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.dynamic_quantization import Recognizer
from webnn_py.device.on_onnxruntime.integer_products import LARGEST, MOST_SUM, ShiftedBytes, shifted_bytes
from webnn_py.device.on_onnxruntime.likeness import Likeness
from webnn_py.device.on_onnxruntime.quantized_lstm import QUANTIZED_LSTM, quantized_lstm
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.onnx_export.model_export import ReadConstant
from webnn_py.operators.movement import concat
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting import RewriteBuilder, rewrite

GATES: Final = 4


def with_quantized_networks(graph: Graph, contents: ReadConstant) -> Graph:
    """The graph with one node for each such network.

    Args:
        graph: what to rewrite.
        contents: gives the values of constants.
    """
    sequences = [node for node in graph.nodes if node.operator is concat and _may_be_sequence(node)]
    if not sequences:
        return graph
    reader = _Reader()
    networks = {
        network.last.cell.node: network
        for network in _read_by_none(graph, [reader.network(node) for node in sequences])
    }
    if not networks:
        return graph
    gone = set[Node]().union(*[network.nodes for network in networks.values()]).difference(networks)
    now: dict[Value, Value] = {}

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        network = networks.get(node)
        if network is None:
            if current is not node:
                now.update(zip(node.results, current.results, strict=True))
            return None
        built = _as_one(network, lambda value: now.get(value, value), contents)
        now.update(built)
        return built

    return rewrite(attrs.evolve(graph, nodes=tuple(node for node in graph.nodes if node not in gone)), replace)


@attrs.frozen
class _Product:
    """What is quantized by its range and multiplied by constant integers.

    Attributes:
        x: what is quantized, of two dimensions.
        matrix: the integers less their zero point, as floats.
        weights: the integers.
        scale: theirs.
        nodes: what computes it.
    """

    x: Value
    matrix: Value
    weights: ShiftedBytes
    scale: Value
    nodes: Collection[Node]


@attrs.frozen
class _Step:
    """A step of a network.

    Attributes:
        of_input: what the input adds to the gates.
        product: of the hidden state before.
        bias: what is added last; None for nothing.
        cell_before: the cell before.
        hidden: the hidden state that it gives.
        cell: the cell that it gives.
        nodes: what computes it.
    """

    of_input: Output
    product: _Product
    bias: Value | None
    cell_before: Value
    hidden: Output
    cell: Output
    nodes: Collection[Node]

    @property
    def weights(self) -> tuple[object, ...]:
        """What all steps have in common."""
        return self.product.matrix, self.product.scale, self.bias


@attrs.frozen(eq=False)
class _Network:
    """All steps of a network, in the order in which they are computed.

    Attributes:
        sequence: all hidden states, in the order of the input.
        product: of the input.
        steps: the steps.
        is_backward: whether the last step of the input comes first.
        nodes: all that computes it, but for constants' floats.
    """

    sequence: Output
    product: _Product
    steps: Sequence[_Step]
    is_backward: bool
    nodes: frozenset[Node] = attrs.field(init=False)

    @nodes.default
    def _nodes(self) -> frozenset[Node]:
        reshapes = [value.node for value in self.sequence.node.inputs if isinstance(value, Output)]
        own = self.sequence.node, self.steps[0].of_input.node, *reshapes
        return frozenset(chain(self.product.nodes, own, *[step.nodes for step in self.steps]))

    @property
    def last(self) -> _Step:
        """The last step that is computed."""
        return self.steps[-1]

    @property
    def results(self) -> frozenset[Value]:
        """What others may read."""
        return frozenset({self.sequence, self.last.hidden, self.last.cell})

    @property
    def operands(self) -> Iterator[Value]:
        """What it reads."""
        first = self.steps[0]
        yield from (self.product.x, first.product.x, first.cell_before, self.product.scale, first.product.scale)
        if first.bias is not None:
            yield first.bias


def _read_by_none(graph: Graph, found: Iterable[_Network | None]) -> list[_Network]:
    """The networks of which others read nothing that is computed on the way, nor have nodes in common with them."""
    owners: dict[Node, _Network] = {}
    for network in found:
        if network is not None and owners.keys().isdisjoint(network.nodes):
            owners.update(dict.fromkeys(network.nodes, network))
    # The steps of a network read what its steps give, and its operands: that was found out as it was read.
    networks = dict.fromkeys(owners.values())
    by_nodes = [node.inputs for node in graph.nodes if node not in owners]
    by_networks = [network.operands for network in networks]
    results = {value for network in networks for value in network.results}
    read = set()
    for value in chain(graph.outputs.values(), *by_nodes, *by_networks):
        owner = owners.get(value.node) if isinstance(value, Output) else None
        if owner is not None and value not in results:
            read.add(owner)
    return [network for network in networks if network not in read]


def _is_laid_out(of_input: _Product, steps: Sequence[_Step]) -> bool:
    """Whether all has the shapes of onnxruntime's operator, nothing is broadcast, and sums fit into int32."""
    state, (first, *_) = steps[0].hidden.descriptor.shape, steps
    if len(state) != 2:
        return False
    batch, units = state
    by_gate = (GATES * units,), (1, GATES * units)
    if first.bias is not None and first.bias.descriptor.shape not in by_gate:
        return False
    for product in (of_input, first.product):
        rows, columns = product.weights.integers.descriptor.shape
        scale = product.scale.descriptor
        if columns != GATES * units or rows * LARGEST**2 > MOST_SUM:
            return False
        if scale.element_count > 1 and scale.shape not in by_gate:
            return False
    wanted = (batch, GATES * units), state, state
    read = ((step.of_input, step.product.x, step.cell_before) for step in steps)
    return all(tuple([value.descriptor.shape for value in values]) == wanted for values in read)


def _may_be_sequence(node: Node) -> bool:
    """Whether a concatenation joins hidden states, as far as its first operand tells."""
    if node.options["axis"] != 0 or len(node.inputs) == 1:
        return False
    step = _made_by(node.inputs[0], "reshape")
    hidden = None if step is None else _made_by(step.inputs[0], "mul")
    return hidden is not None and _made_by(hidden.inputs[0], "sigmoid") is not None


def _made_by(value: object, name: str) -> Node | None:
    """The node that gives a value, if it is of that operator."""
    return value.node if isinstance(value, Output) and value.node.operator.name == name else None


class _Reader:
    """Reads networks in a graph."""

    def __init__(self) -> None:
        self._recognizer = Recognizer()

    def network(self, joined: Node) -> _Network | None:
        """The network whose hidden states a node joins; None if they are none of any."""
        steps: list[_Step] = []
        for value in joined.inputs:
            reshape = _made_by(value, "reshape")
            step = None if reshape is None else self._step_like(reshape.inputs[0], steps)
            if step is None or value.descriptor.shape != (1, 1, *step.hidden.descriptor.shape):
                return None
            steps.append(step)
        is_backward = steps[0].product.x is steps[1].hidden
        whole = steps[0].of_input.node
        if [step.of_input for step in steps] != [*whole.results] or whole.options["axis"] != 0:
            return None
        ordered = steps[::-1] if is_backward else steps
        follows = (b.product.x is a.hidden and b.cell_before is a.cell for a, b in pairwise(ordered))
        is_one = all(follows) and len({step.weights for step in steps}) == 1
        product = self._product(whole.inputs[0]) if is_one else None
        if product is None or not _is_laid_out(product, ordered):
            return None
        return _Network(joined.results[0], product, ordered, is_backward)

    def _step_like(self, hidden: Value, steps: Sequence[_Step]) -> _Step | None:
        """The step that gives a hidden state: like the second one, or read by itself."""
        if len(steps) < 2:
            return self._step(hidden)
        if len(steps) == 2:
            self._second = _Second(steps[1])
        return self._second.step(hidden) or self._step(hidden)

    def _step(self, hidden: Value) -> _Step | None:
        match = _Match()
        output, cell_out = match.operands(hidden, "mul")
        (cell,) = match.operands(cell_out, "tanh")
        kept, new = match.operands(cell, "add")
        forget, cell_before = match.operands(kept, "mul")
        input_, candidate = match.operands(new, "mul")
        gates = [*(match.operands(gate, "sigmoid")[0] for gate in (input_, output, forget))]
        gates += match.operands(candidate, "tanh")
        summed = match.split(gates)
        bias = None
        a, b = match.operands(summed, "add")
        if _made_by(a, "add") is not None:
            bias = b
            a, b = match.operands(a, "add")
        product = None if match.has_failed else self._product(b)
        if product is None or _made_by(a, "split") is None or not isinstance(cell_before, Value):
            return None
        assert isinstance(a, Output)  # noqa: S101 - for type checkers: a split gives it
        assert isinstance(hidden, Output)  # noqa: S101 - likewise
        assert isinstance(cell, Output)  # noqa: S101 - likewise
        nodes = match.nodes.union(product.nodes)
        return _Step(a, product, bias, cell_before, hidden, cell, nodes)

    def _product(self, value: object) -> _Product | None:
        match = _Match()
        floats, scales = match.operands(value, "mul")
        (sums,) = match.operands(floats, "cast")
        (product,) = match.operands(sums, "cast")
        a, matrix = match.operands(product, "matmul")
        own_scale, scale = match.operands(scales, "mul")
        quantized, zero_point = match.operands(a, "sub")
        (integers,) = match.operands(quantized, "cast")
        (zero_integer,) = match.operands(zero_point, "cast")
        there = None if match.has_failed else self._recognizer.at(integers.node)
        weights = None if there is None else shifted_bytes(matrix)
        if there is None or weights is None or there.scale is not own_scale or there.zero_point is not zero_integer:
            return None
        is_matrix = isinstance(weights.integers, Constant) and weights.integers.descriptor.rank == 2
        of_all = weights.zero_point is None or weights.zero_point.descriptor.element_count == 1
        if not (is_matrix and of_all and there.input.descriptor.rank == 2):
            return None
        return _Product(there.input, matrix, weights, scale, frozenset({*match.nodes, *there.nodes}))


class _Second:
    """Reads steps that are like another one, the second, whose states are none that are given.

    Args:
        step: the other one.
    """

    def __init__(self, step: _Step) -> None:
        changing = step.of_input, step.product.x, step.cell_before
        self._other = step
        self._likeness = Likeness(step.hidden, step.nodes, changing)
        self._places = [self._likeness.place[value] for value in (*changing, step.cell)]

    def step(self, hidden: Value) -> _Step | None:
        """The step that gives a hidden state; None if it is not like the other one."""
        values = self._likeness.values(hidden)
        if values is None:
            return None
        of_input, x, cell_before, cell = (values[place] for place in self._places)
        assert isinstance(of_input, Output)  # noqa: S101 - for type checkers: as those of the other one
        assert isinstance(hidden, Output)  # noqa: S101 - likewise
        assert isinstance(cell, Output)  # noqa: S101 - likewise
        product, bias = self._other.product, self._other.bias
        product = _Product(x, product.matrix, product.weights, product.scale, ())
        nodes = [value.node for place in self._likeness.nodes_at if isinstance(value := values[place], Output)]
        return _Step(of_input, product, bias, cell_before, hidden, cell, nodes)


class _Match:
    """Goes back from a value by what must have made it.

    Attributes:
        nodes: what it has met.
        has_failed: whether something else was met.
    """

    def __init__(self) -> None:
        self.nodes: set[Node] = set()
        self.has_failed = False

    def operands(self, value: Any, name: str) -> tuple[Any, ...]:
        """The operands of the operator of that name that made a value; as many None where another one did."""
        node = _made_by(value, name)
        if node is None:
            self.has_failed = True
            return (None,) * (1 if name in {"cast", "sigmoid", "tanh"} else 2)
        self.nodes.add(node)
        return node.inputs

    def split(self, parts: Sequence[Any]) -> Any:
        """What was cut into exactly the four gates, which are given as input, output, forget and candidate."""
        node = _made_by(parts[0], "split")
        if node is None or [*node.results] != [*parts] or node.options["axis"] != 1:
            self.has_failed = True
            return None
        self.nodes.add(node)
        return node.inputs[0]


def _as_one(network: _Network, now: Callable[[Value], Value], contents: ReadConstant) -> dict[Value, Value]:
    """What takes the place of a network's results: those of one node, of the operands that there are now."""
    first, last = network.steps[0], network.last
    drawn = tuple(sorted(set(chain.from_iterable([node.drawn for node in network.nodes]))))
    builder = RewriteBuilder(network.sequence.node.label, drawn)
    batch, units = last.hidden.descriptor.shape
    state = [1, batch, units]

    def shaped(value: Value, shape: Sequence[int]) -> MLOperand:
        there = now(value)
        if isinstance(there, Constant) and isinstance(there.data, np.ndarray):
            descriptor = MLOperandDescriptor(there.descriptor.data_type, tuple(shape))
            return builder.operand(Constant(descriptor, there.data.reshape(shape), there.key))
        operand: MLOperand = builder.reshape(builder.operand(there), [*shape])
        return operand

    operands = {
        "x": shaped(network.product.x, [len(network.steps), batch, network.product.x.descriptor.shape[1]]),
        "hidden": shaped(first.product.x, state),
        "cell": shaped(first.cell_before, state),
    }
    for name, product in (("w", network.product), ("r", first.product)):
        integers, zero_point = _in_bytes(product.weights, contents)
        operands |= {name: builder.operand(integers), f"{name}_zero_point": builder.operand(zero_point)}
        scale = product.scale.descriptor
        operands[f"{name}_scale"] = shaped(product.scale, [1, *scale.shape[-1:]] if scale.element_count > 1 else [1])
    if first.bias is not None:
        operands["bias"] = _whole_bias(builder, shaped(first.bias, [1, GATES * units]))
    values = {name: builder.value(operand) for name, operand in operands.items()}
    options = {"is_backward": network.is_backward}
    outputs = tuple(quantized_lstm(**operands, is_backward=network.is_backward))
    made = Node(QUANTIZED_LSTM, values, options, outputs, network.sequence.node.label, drawn)
    results = [builder.reshape(builder.operand(value), [batch, units]) for value in made.results[1:]]
    return {
        network.sequence: made.results[0],
        last.hidden: builder.value(results[0]),
        last.cell: builder.value(results[1]),
    }


def _whole_bias(builder: RewriteBuilder, bias: MLOperand) -> MLOperand:
    """The input's bias, and none of the state."""
    value = builder.value(bias)
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray):
        array = np.concatenate([value.data, np.zeros_like(value.data)], 1)
        return builder.operand(Constant(MLOperandDescriptor("float32", array.shape), array))
    none = builder.constant(bytes(bias.shape[1] * 4), data_type="float32", shape=bias.shape)
    whole: MLOperand = builder.concat([bias, none], 1)
    return whole


def _in_bytes(weights: ShiftedBytes, contents: ReadConstant) -> tuple[Constant, Constant]:
    """Constant integers as those of one direction, and their zero point, which is 0 where there is none."""
    integers, zero_point = weights.integers, weights.zero_point
    assert isinstance(integers, Constant)  # noqa: S101 - weights are
    rows = _shaped(integers, (1, *integers.descriptor.shape), contents)
    if zero_point is None:
        data_type = integers.descriptor.data_type
        return rows, Constant(MLOperandDescriptor(data_type, (1,)), np.zeros(1, data_type))
    assert isinstance(zero_point, Constant)  # noqa: S101 - likewise
    return rows, _shaped(zero_point, (1,), contents)


def _shaped(value: Constant, shape: tuple[int, ...], contents: ReadConstant) -> Constant:
    """The same constant in another shape."""
    return Constant(attrs.evolve(value.descriptor, shape=shape), contents(value).reshape(shape), value.key)
