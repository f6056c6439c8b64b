"""A decoder as a session's model: around the ONNX model, what makes its inputs of a few integers, and keeps its cache.

A graph takes ``step``, int32 [batch, 2 + new]: of each sequence how many tokens are in the cache, which of the new
tokens the logits are wanted of, and the new tokens. The attention mask, the positions, and the new cache are computed
on the device. The cache has room for ``capacity`` tokens; the mask hides what is beyond a sequence, so that one graph
serves all lengths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast, final

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import listed, shown
from webnn_py.core.operators.operand import MLOperand
from webnn_py.onnx_models import OnnxModel, TensorInfo
from webnn_py.runtime.generation.configuration import DecoderConfiguration
from webnn_py.runtime.generation.growing_caches import (
    GrowingCaches,
    PastLengths,
    Replacing,
    Value,
    cache_places,
    cache_rows,
    taken_nodes,
)
from webnn_py.runtime.graph_cache import graph_key
from webnn_py.runtime.models import DrawnModel, OnnxSource, Progress
from webnn_py.runtime.records import TensorDescriptor
from webnn_py.runtime.tensor import Tensor

STEP: Final = "step"
LOGITS: Final = "logits"
TOKEN: Final = "token"  # noqa: S105 - no password
LEADING: Final = 2
"""Columns of ``step`` before the tokens."""

VERSION: Final = 3
"""Of the graphs that this module draws, in the keys of the graph cache."""

WRITING: Final = frozenset({"GroupQueryAttention", "TensorScatter"})
"""Operators that write new keys into a cache of fixed length."""

APPENDING: Final[Mapping[str, tuple[int, ...]]] = {"Concat": (), "MultiHeadAttention": (4, 5), "Attention": (3,)}
"""Operators that append new keys to a cache, with their inputs of masks, one of which must be given."""

PRODUCTS: Final = ("MatMul", "MatMulNBits")
ROW_BY_ROW: Final = ("Add", "Cast", "Div", "Identity", "Mul", "Tanh")
"""Operators that compute each row of logits from one of their operand."""

BRANCH: Final = "use_cache_branch"
"""The input by which optimum's merged decoders choose between their two graphs."""


@final
class DecoderSource(DrawnModel):
    """A decoder with its cache, as a model for a session.

    Args:
        model: the ONNX model.
        configuration: its configuration.
        capacity: how many tokens its cache has room for.

    Attributes:
        inputs: ``step``, and the keys and values of each layer.
        outputs: ``logits``, float32 [batch, tokens]; ``token``, int32 [batch], the likeliest, or -1 where its
            logit is no finite number; the new keys and values.
        sizes: the sizes of symbolic dimensions that are known: none.
        caches: the names of inputs of keys and values, each with that of its output.
        appends: whether the model appends to its cache, instead of writing into one of fixed length.
        hides: whether the model hides what is not in its cache, which then is to be checked.
        grows: whether the model takes a cache of any length.
        vocabulary: how many tokens there are.

    Raises:
        NotSupportedError: the model has other inputs or outputs than decoders that are supported.
    """

    def __init__(self, model: OnnxModel, configuration: DecoderConfiguration, capacity: int) -> None:
        self._model = model
        self._names = configuration.names
        self._capacity = capacity
        self.caches = dict(cache_names(configuration))
        self._check_names()
        nodes, weights = taken_nodes(model, {BRANCH: True})
        operators = self._readers(nodes)
        self.hides = operators != {"GroupQueryAttention"}
        self.grows = not operators <= WRITING
        lengths = PastLengths(nodes, weights, self.caches, has_sums=operators == {"Concat"})
        has_positions = self._names.positions in model.inputs
        self._lengths = lengths if lengths.is_known and not has_positions else None
        self._growing = None
        if operators == {"Concat"} and (has_positions or self._lengths is not None):
            with suppress(NotSupportedError):  # what attends in another way may be given a past of the whole capacity
                self._growing = GrowingCaches(nodes, *split_caches(configuration), self._lengths)
        self.appends = self._growing is None and self.grows
        self._rows = capacity if self._growing is None else cache_rows(capacity)
        cached = {name: self._cache(name) for name in self.caches}
        self.inputs = {STEP: TensorDescriptor("int32", ("batch", "columns")), **cached}
        self.vocabulary = vocabulary_of(model, self._names.logits)
        self._hidden = last_hidden(model, self._names.logits)
        self.outputs = {
            LOGITS: TensorDescriptor("float32", ("batch", self.vocabulary)),
            TOKEN: TensorDescriptor("int32", ("batch",)),
            **{self.caches[name]: item for name, item in cached.items()},
        }

    # --- the model's inputs and outputs ----------------------------------------------------------------------

    def _check_names(self) -> None:
        """Refuse a model that lacks what a decoder needs, or asks for more."""
        names, model = self._names, self._model
        needed = [names.tokens, names.attention_mask, *self.caches]
        missing = [name for name in needed if name not in model.inputs]
        missing += [name for name in (names.logits, *self.caches.values()) if name not in model.outputs]
        if missing:
            raise NotSupportedError(
                f"create_generator(): the model lacks {listed(missing)}; its inputs are {list(model.inputs)}, its "
                f"outputs {list(model.outputs)}"
            )
        more = [name for name in model.inputs if name not in {*needed, names.positions, BRANCH}]
        if more:
            raise NotSupportedError(
                f"create_generator(): the model has the input {listed(more)}, which is not supported; a decoder has "
                f"{names.tokens!r}, {names.attention_mask!r}, {names.positions!r} and past keys and values"
            )

    def _readers(self, nodes: Iterable[NodeProto]) -> frozenset[str]:
        """Return the operators that read caches; refuse those that neither write nor append, or hide nothing."""
        readers = [node for node in nodes if not self.caches.keys().isdisjoint(node.input)]
        readers = [node for node in readers if node.op_type not in {"Shape", "If"}]
        operators = frozenset(node.op_type for node in readers)
        if operators <= WRITING:
            return operators
        wrong = sorted(operators - APPENDING.keys())
        if wrong:
            raise NotSupportedError(
                f"create_generator(): past keys and values are read by {listed(wrong)}; decoders are supported whose "
                f"caches are read by {listed([*sorted(WRITING), *APPENDING])}"
            )
        for node in readers:
            masks = APPENDING[node.op_type]
            if masks and not any(node.input[at : at + 1] not in ([], [""]) for at in masks):
                raise NotSupportedError(
                    f"create_generator(): {node.op_type} {shown(node.name)} attends to the whole past, without a mask; "
                    "a mask that comes from attention_mask must hide what is not in the cache"
                )
        return operators

    def _cache(self, name: str) -> TensorDescriptor:
        info = self._model.inputs[name]
        match info.shape:
            case (_, int(heads), _, int(size)):
                return TensorDescriptor(info.data_type, ("batch", heads, self._rows, size))
        raise NotSupportedError(
            f"create_generator(): input {name!r} is {info}; it must be [batch, heads, length, size], with heads and "
            "size known"
        )

    def _key(self, shapes: Mapping[str, tuple[int, ...]], experimental: Collection[str]) -> str:
        return f"decoder {VERSION} {graph_key(self._model, shapes, {}, tuple(self.outputs), experimental)}"

    def as_it_is(self, token: int, contents: Mapping[str, Tensor]) -> OnnxSource:
        """Return the model for one token with a cache of some length, as nothing has changed it.

        Args:
            token: the token.
            contents: the past keys and values, by the inputs' names.
        """
        length = contents[next(iter(self.caches))].dims[2]
        given = {
            self._names.tokens: np.array([[token]]),
            self._names.attention_mask: np.ones([1, length + 1]),
            self._names.positions: np.array([[length]]),
            BRANCH: np.array([True]),
        }
        return frozen(self._model, given, self._names.logits)

    # --- the graph -------------------------------------------------------------------------------------------

    async def _drawn(
        self, builder: MLGraphBuilder, shapes: Mapping[str, tuple[int, ...]], progress: Progress | None
    ) -> dict[str, MLOperand]:
        batch, columns = shapes[STEP]
        new = columns - LEADING
        step = builder.input(STEP, data_type="int32", shape=[batch, columns])
        known = builder.slice(step, [0, 0], [batch, 1])
        counted = builder.add(known, builder.constant(np.arange(new, dtype=np.int32).reshape(1, new)))
        pasts = {
            name: builder.input(name, data_type=typed(item), shape=shapes[name])
            for name, item in self.inputs.items()
            if name != STEP
        }
        given = {
            self._names.tokens: builder.slice(step, [0, LEADING], [batch, new]),
            self._names.attention_mask: self._mask(builder, known, new),
            self._names.positions: counted,
        }
        fed = cast_inputs(builder, self._model, given)
        values = {BRANCH: np.array([True])} if BRANCH in self._model.inputs else {}
        wanted = [self._names.logits, *self.caches.values()]
        select = partial(_rows, builder, new, builder.slice(step, [0, 1], [batch, 1]))
        replacing = self._replacing(builder, pasts, counted)
        if self._hidden is not None:
            replacing[self._hidden] = select
        seen = pasts if self._growing is None else {name: before(builder, past, new) for name, past in pasts.items()}
        results = await self._model._convert_in_steps(
            builder, {}, values, {**fed, **seen}, wanted, progress=progress, replacing=replacing
        )
        last = select(results[self._names.logits])
        rows = builder.reshape(cast("MLOperand", last), [batch, self.vocabulary])
        logits = builder.cast(rows, "float32")
        drawn = {LOGITS: logits, TOKEN: likeliest(builder, logits)}
        for name, past in pasts.items():
            output = self.caches[name]
            drawn[output] = self._kept(builder, output, past, results[output], counted)
        return drawn

    def _replacing(
        self, builder: MLGraphBuilder, pasts: Mapping[str, MLOperand], counted: MLOperand
    ) -> dict[str, Replacing]:
        """Return what takes the place of results of the model's nodes, which counts from the length of its past."""
        if self._growing is not None:
            return self._growing.replacing(builder, pasts, counted, self._rows)
        return {} if self._lengths is None else self._lengths.replacing(builder, counted, self._rows)

    def _mask(self, builder: MLGraphBuilder, known: MLOperand, new: int) -> MLOperand:
        """Return the attention mask, 1 where there is a token: in the cache, and of what is appended to it."""
        batch = known.shape[0]
        places = builder.constant(np.arange(self._rows, dtype=np.int32).reshape(1, -1))
        if not self.appends:
            return builder.lesser(places, builder.add(known, builder.constant(new, data_type="int32")))
        ones = builder.constant(np.ones([batch, new], np.uint8))
        return builder.concat([builder.lesser(places, known), ones], 1)

    def _kept(
        self, builder: MLGraphBuilder, name: str, past: MLOperand, present: MLOperand, counted: MLOperand
    ) -> MLOperand:
        """Return the new cache, of what the model makes of the old one.

        Raises:
            NotSupportedError: that has another shape than expected.
        """
        batch, heads, capacity, size = past.shape
        new = counted.shape[1]
        length = capacity + (new if self.appends else 0)
        if present.shape != (batch, heads, length, size) or present.data_type != past.data_type:
            raise NotSupportedError(
                f"create_generator(): output {name!r} is {present.data_type} {list(present.shape)}; it must be "
                f"{past.data_type} {[batch, heads, length, size]}, for a cache of {capacity} tokens and {new} new ones"
            )
        if not self.appends:
            return present
        fresh = builder.slice(present, [0, 0, capacity, 0], [batch, heads, new, size])
        return builder.scatter_nd(past, cache_places(builder, counted, heads), fresh)


def before(builder: MLGraphBuilder, cache: MLOperand, new: int) -> MLOperand:
    """Return a past for a model that appends ``new`` rows, which then are as many as the cache has."""
    batch, heads, rows, size = cache.shape
    return builder.slice(cache, [0] * 4, [batch, heads, rows - new, size])


def cast_inputs(builder: MLGraphBuilder, model: OnnxModel, given: Mapping[str, MLOperand]) -> dict[str, MLOperand]:
    """Return those operands that are inputs of the model, in the data types that it declares."""
    return {name: builder.cast(item, typed(model.inputs[name])) for name, item in given.items() if name in model.inputs}


def vocabulary_of(model: OnnxModel, logits: str) -> int:
    """Return the number of tokens, the last size of the logits; refuse a model that does not declare it."""
    shape = model.outputs[logits].shape
    if shape is None or len(shape) != 3 or not isinstance(shape[2], int):
        raise NotSupportedError(
            f"create_generator(): output {logits!r} is of shape {shown(shape)}; it must be [batch, new, tokens], "
            "with the number of tokens known"
        )
    return shape[2]


def typed(item: TensorDescriptor | TensorInfo) -> MLOperandDataType:
    """Return the data type of an input that becomes an operand, which refuses one that WebNN lacks."""
    return cast("MLOperandDataType", item.data_type)


def _rows(builder: MLGraphBuilder, new: int, row: MLOperand, states: Value) -> Value:
    """Return one row of each sequence, [batch, 1, size], of a row for each new token; of anything else the same."""
    if not isinstance(states, MLOperand) or states.rank != 3 or states.shape[:2] != (row.shape[0], new) or new == 1:
        return states
    batch, _, size = states.shape
    starts = builder.constant(np.arange(0, batch * new, new, dtype=np.int32).reshape(batch, 1))
    return builder.gather(builder.reshape(states, [batch * new, size]), builder.add(row, starts))


def likeliest(builder: MLGraphBuilder, logits: MLOperand) -> MLOperand:
    """Return the token of the greatest logit of each sequence, [batch], or -1 where that is NaN or infinite."""
    tokens = builder.arg_max(logits, 1, keep_dimensions=True, output_data_type="int32")
    greatest = builder.gather_elements(logits, tokens, axis=1)
    is_wrong = builder.logical_or(builder.is_nan(greatest), builder.is_infinite(greatest))
    chosen = builder.where(is_wrong, builder.constant(-1, data_type="int32"), tokens)
    return builder.reshape(chosen, [logits.shape[0]])


def last_hidden(model: OnnxModel, logits: str) -> str | None:
    """Return the name of the hidden states that the product of the logits alone reads, if there is one.

    Only the rows of the last tokens are then multiplied: the logits of a prompt may take more memory than the model.

    Args:
        model: the decoder.
        logits: the name of its output.
    """
    graph = model._proto.graph
    makers = {name: node for node in graph.node for name in node.output}
    ranks = {item.name: len(item.dims) for item in graph.initializer}
    reads = Counter(name for node in graph.node for name in node.input)
    name = logits
    while (node := makers.get(name)) is not None:
        others = [item for item in node.input[1:] if item]
        known = [_rank(item, ranks, makers) for item in others]
        if node.op_type in PRODUCTS and all(rank is not None for rank in known):
            return node.input[0] if reads[node.input[0]] == 1 else None
        if node.op_type not in ROW_BY_ROW or not all(rank is not None and rank <= 1 for rank in known):
            return None
        name = node.input[0]
    return None


def _rank(name: str, ranks: Mapping[str, int], makers: Mapping[str, NodeProto]) -> int | None:
    """Return the rank of a weight, which may be transposed or cast; None of anything else."""
    node = makers.get(name)
    while node is not None and node.op_type in {"Cast", "Transpose"}:
        name = node.input[0]
        node = makers.get(name)
    return ranks.get(name)


def frozen(model: OnnxModel, values: Mapping[str, NDArray[Any]], output: str) -> OnnxSource:
    """Return a model with values for those of its inputs that it has."""
    known = {
        name: value.astype(model.inputs[name].data_type) if value.dtype != np.bool_ else value
        for name, value in values.items()
        if name in model.inputs
    }
    return OnnxSource(model, {}, known, [output])


def split_caches(configuration: DecoderConfiguration) -> tuple[list[str], list[str]]:
    """Return the names of the inputs of keys, and of those of values."""
    pasts = [past for past, _ in cache_names(configuration)]
    return pasts[::2], pasts[1::2]


def cache_names(configuration: DecoderConfiguration) -> Iterator[tuple[str, str]]:
    """Yield the names of the inputs of keys and values, each with that of its output."""
    names = configuration.names
    for layer in range(configuration.layers):
        for past, present in zip(names.past, names.present, strict=True):
            yield past.replace("%d", str(layer)), present.replace("%d", str(layer))
