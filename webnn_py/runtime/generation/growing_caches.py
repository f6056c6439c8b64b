"""Caches that a model lets grow by concatenation, drawn as caches of fixed capacity.

Each layer of such a model appends new keys and values to those of its past by Concat, and attends to all of them. Here
the new ones are written into a cache of ``capacity`` rows, at their positions, in the place of the concatenation. The
model sees a past of ``capacity - new`` rows, so that all shapes that it computes fit. What differs is replaced while
the model is converted: the concatenations, the positions that it computes from the length of its past, and the scores
that softmaxes read, in which rows behind a token's own are hidden. So one graph serves all lengths, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, final

import attrs
import numpy as np
from onnx import AttributeProto, NodeProto

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import listed, shown
from webnn_py.core.operators.operand import MLOperand
from webnn_py.onnx_models import OnnxModel
from webnn_py.onnx_models.reading.tensors import tensor_array

Value = MLOperand | np.ndarray
Replacing = Callable[[Value], Value]

Weight = Callable[[], np.ndarray]
"""Reads an initializer."""

WIDTH: Final = 4
"""Caches have a multiple of so many rows, which kernels read at once."""

OF_SCORES: Final = frozenset(
    {
        *("Transpose", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Identity", "Cast"),
        *("MatMul", "Einsum", "Mul", "Div", "Add", "Sub", "Where", "Tanh"),
    }
)
"""The operators between the keys and the softmax of an attention."""

OF_LENGTHS: Final = frozenset(
    {"Gather", "Slice", "Squeeze", "Unsqueeze", "Add", "Sub", "Cast", "Concat", "Reshape", "Identity"}
)
"""The operators that compute with the length of the past."""


@final
class PastLengths:
    """The places of a model's graph where it counts positions from the length of its past.

    Args:
        nodes: of the graph, and of the branches in it that are taken.
        weights: the initializers by name.
        pasts: the inputs of past keys and values.
        has_sums: whether the sum of that length and a Range is positions, too: masks are often made of it.
    """

    def __init__(
        self, nodes: Sequence[NodeProto], weights: Mapping[str, Weight], pasts: Iterable[str], *, has_sums: bool
    ) -> None:
        self._weights = weights
        readers = readers_of(nodes)
        ranges = {node.output[0] for node in nodes if node.op_type == "Range"} if has_sums else set()
        pending = [node.output[0] for past in pasts for node in readers.get(past, ()) if node.op_type == "Shape"]
        seen = set(pending)
        self._places: dict[str, NodeProto] = {}
        while pending:
            name = pending.pop()
            for node in readers.get(name, ()):
                starts = {"Range": node.input[:1], "Slice": node.input[1:2]}.get(node.op_type, ())
                if name in starts or (node.op_type == "Add" and not ranges.isdisjoint(node.input)):
                    self._places[node.output[0]] = node
                elif node.op_type in OF_LENGTHS and node.output[0] not in seen:
                    seen.add(node.output[0])
                    pending.append(node.output[0])

    @property
    def is_known(self) -> bool:
        """Return whether something counts, and nothing takes a part of what the model computes otherwise."""
        parts = [node.input[0] for node in self._places.values() if node.op_type == "Slice"]
        return bool(self._places) and all(name in self._weights for name in parts)

    def replacing(self, builder: MLGraphBuilder, counted: MLOperand, begin: int) -> dict[str, Replacing]:
        """Return what takes the place of positions, and of rows of tables at these, by the results' names.

        Args:
            builder: of the graph.
            counted: the positions of new tokens, int32 [batch, new].
            begin: the length of the past that the model sees.
        """
        replaced: dict[str, Replacing] = {}
        for name, node in self._places.items():
            table = self._weights.get(node.input[0]) if node.op_type == "Slice" else None
            replaced[name] = partial(_at_positions, builder, counted, begin, table)
        return replaced


def _at_positions(builder: MLGraphBuilder, counted: MLOperand, begin: int, table: Weight | None, value: Value) -> Value:
    """Return positions, or rows of a table, that come from ``counted``; of anything else the same.

    Raises:
        NotSupportedError: there are several sequences, whose positions differ.
    """
    batch, new = counted.shape
    rows = None if table is None else table()
    if rows is None and not _is_counted(value, begin, new):
        return value
    if rows is not None and (value.shape[1:] != rows.shape[1:] or value.shape[0] > new):
        return value  # of fewer rows where a cache has more than the table
    if batch != 1:
        raise NotSupportedError(
            f"generate(): the model counts positions from the length of its past, so {batch} sequences cannot be "
            "computed together; generate them one by one, or export the model with position_ids"
        )
    if rows is not None:
        return builder.gather(builder.constant(np.ascontiguousarray(rows)), builder.reshape(counted, [new]))
    return builder.reshape(counted, value.shape)


def _is_counted(value: Value, begin: int, new: int) -> bool:
    """Return whether a value is that of positions behind a past of known length."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        return False
    return np.array_equal(value.reshape(-1), np.arange(begin, begin + new))


def readers_of(nodes: Iterable[NodeProto]) -> dict[str, list[NodeProto]]:
    """Return the nodes that read each value, by its name."""
    readers: dict[str, list[NodeProto]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return readers


@final
class GrowingCaches:
    """The places of a model's graph where it lets its caches grow.

    Args:
        nodes: of the graph, and of the branches in it that are taken.
        keys: the inputs of past keys.
        values: the inputs of past values.
        lengths: where it counts positions from the length of its past; None where it does not.

    Raises:
        NotSupportedError: past keys or values are read by something else than a concatenation.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProto],
        keys: Iterable[str],
        values: Iterable[str],
        lengths: PastLengths | None,
    ) -> None:
        self._readers = readers_of(nodes)
        self._lengths = lengths
        self._appends = {past: self._append_to(past) for past in (*keys, *values)}
        self._softmaxes = {name for past in keys for name in self._softmaxes_of(self._appends[past].output[0])}

    def _append_to(self, past: str) -> NodeProto:
        """Return the node that appends to a past."""
        readers = [node for node in self._readers.get(past, ()) if node.op_type != "Shape"]
        for node in readers:
            if node.op_type != "Concat" or list(node.input[:1]) != [past]:
                raise NotSupportedError(
                    f"create_generator(): {node.op_type} {shown(node.name)} reads {past!r}; it must be a Concat that "
                    "appends to it"
                )
            if len(node.input) != 2 or _integer(node, "axis", 0) not in {2, -2}:
                raise NotSupportedError(
                    f"create_generator(): Concat {shown(node.name)} of {past!r} has {len(node.input)} inputs and axis "
                    f"{_integer(node, 'axis', 0)}; it must append one tensor at axis 2"
                )
        if len(readers) != 1:
            raise NotSupportedError(
                f"create_generator(): {past!r} is read by {len(readers)} nodes; it must be read by one Concat"
            )
        return readers[0]

    def _softmaxes_of(self, keys: str) -> Iterable[str]:
        """Yield the names of the scores that softmaxes read, and that are made of the keys."""
        pending, seen = [keys], {keys}
        while pending:
            for node in self._readers.get(pending.pop(), ()):
                if node.op_type == "Softmax":
                    yield node.input[0]
                elif node.op_type in OF_SCORES:
                    fresh = [name for name in node.output if name not in seen]
                    seen.update(fresh)
                    pending.extend(fresh)
                elif node.op_type != "Shape":
                    raise NotSupportedError(
                        f"create_generator(): {node.op_type} {shown(node.name)} computes with the keys {keys!r}; "
                        f"attention is supported that is drawn by {listed(sorted(OF_SCORES))} and Softmax"
                    )

    def replacing(
        self, builder: MLGraphBuilder, caches: Mapping[str, MLOperand], counted: MLOperand, capacity: int
    ) -> dict[str, Replacing]:
        """Return what takes the place of results of the model's nodes, by their names.

        Args:
            builder: of the graph.
            caches: the caches of keys and values, [batch, heads, capacity, size], by the model's inputs.
            counted: the positions of new tokens, int32 [batch, new].
            capacity: how many tokens the caches have room for.
        """
        drawing = _Replacements(builder, counted, capacity)
        replaced: dict[str, Replacing] = {}
        for past, node in self._appends.items():
            replaced[node.input[1]] = drawing.noting(node.input[1])
            replaced[node.output[0]] = drawing.writing(past, node.input[1], caches[past])
        replaced |= dict.fromkeys(self._softmaxes, drawing.hidden)
        if self._lengths is not None:
            replaced |= self._lengths.replacing(builder, counted, capacity - counted.shape[1])
        return replaced


@attrs.define
class _Replacements:
    """The replacements of one graph."""

    builder: MLGraphBuilder
    counted: MLOperand
    capacity: int
    noted: dict[str, MLOperand] = attrs.field(factory=dict)
    written: set[MLOperand] = attrs.field(factory=set)
    visible: MLOperand | None = None

    @property
    def batch(self) -> int:
        return self.counted.shape[0]

    @property
    def new(self) -> int:
        return self.counted.shape[1]

    def noting(self, name: str) -> Replacing:
        """Return what remembers new keys or values."""

        def note(value: Value) -> Value:
            if isinstance(value, MLOperand):
                self.noted[name] = value
            return value

        return note

    def writing(self, name: str, fresh: str, cache: MLOperand) -> Replacing:
        """Return what writes new keys or values into a cache, in the place of a longer tensor."""

        def write(value: Value) -> Value:
            if isinstance(value, MLOperand) and value in self.written:  # a branch's output has the name of the model's
                return value
            rows = self.noted.get(fresh)
            batch, heads, _, size = cache.shape
            if rows is None:
                raise NotSupportedError(f"create_generator(): what is appended to {name!r} is no result of a node")
            if rows.shape != (batch, heads, self.new, size) or rows.data_type != cache.data_type:
                raise NotSupportedError(
                    f"create_generator(): {rows.data_type} {list(rows.shape)} is appended to a cache for {name!r}; it "
                    f"must be {cache.data_type} {[batch, heads, self.new, size]}"
                )
            result = self.builder.scatter_nd(cache, cache_places(self.builder, self.counted, heads), rows)
            self.written.add(result)
            return result

        return write

    def hidden(self, scores: Value) -> Value:
        """Hide the scores of rows behind a token's own."""
        if not isinstance(scores, MLOperand):
            return scores
        shape = scores.shape
        if shape[-2:] != (self.new, self.capacity) or not (len(shape) == 4 or (len(shape) == 3 and self.batch == 1)):
            raise NotSupportedError(
                f"create_generator(): a softmax of keys has scores of shape {list(shape)}; they must be [batch, heads, "
                f"{self.new}, {self.capacity}], for {self.new} new tokens and a cache of {self.capacity}"
            )
        builder = self.builder
        if self.visible is None:
            places = builder.constant(np.arange(self.capacity, dtype=np.int32).reshape(1, 1, 1, -1))
            own = builder.reshape(self.counted, [self.batch, 1, self.new, 1])
            self.visible = builder.lesser_or_equal(places, own)
        visible = self.visible if len(shape) == 4 else builder.reshape(self.visible, [1, self.new, self.capacity])
        lowest = builder.constant(np.array(np.finfo(scores.data_type).min))
        return builder.where(visible, scores, lowest)


def cache_rows(capacity: int) -> int:
    """Return how many rows a cache has that grows: the past that a model sees is never empty."""
    return capacity + WIDTH - capacity % WIDTH


def cache_places(builder: MLGraphBuilder, counted: MLOperand, heads: int) -> MLOperand:
    """Return the indices of new keys in a cache, [batch, heads, new, 3]: sequence, head and position."""
    batch, new = counted.shape
    shape = [batch, heads, new, 1]
    outer = np.indices([batch, heads, new], np.int32)[:2]
    position = builder.expand(builder.reshape(counted, [batch, 1, new, 1]), shape)
    return builder.concat([*(builder.constant(item.reshape(shape)) for item in outer), position], 3)


def taken_nodes(model: OnnxModel, taken: Mapping[str, bool]) -> tuple[list[NodeProto], dict[str, Weight]]:
    """Return the nodes of a model, and of the branches in it that are taken; and all their initializers by name.

    Args:
        model: the model.
        taken: known conditions, by name; of an If with another condition both branches may be taken.
    """
    nodes: list[NodeProto] = []
    weights: dict[str, Weight] = {}
    pending = [(model._proto.graph, model._weights.value)]
    while pending:
        graph, read = pending.pop()
        weights |= {item.name: partial(read, item) for item in graph.initializer}
        for node in graph.node:
            nodes.append(node)
            branches: dict[str, AttributeProto] = {item.name: item for item in node.attribute if item.HasField("g")}
            condition = taken.get(node.input[0]) if node.op_type == "If" and node.input else None
            skipped = {None: "", True: "else_branch", False: "then_branch"}[condition]
            pending.extend((item.g, tensor_array) for name, item in branches.items() if name != skipped)
    return nodes, weights


def _integer(node: NodeProto, name: str, default: int) -> int:
    return next((int(item.i) for item in node.attribute if item.name == name), default)
