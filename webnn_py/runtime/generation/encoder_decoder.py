"""The decoder of an encoder-decoder as two models for sessions: its first step, and those with a cache.

The first step takes the first tokens and the encoder's hidden states. It gives the cache of the tokens, filled up with
zeros to the capacity, and the keys and values of the hidden states, which all later steps read and none computes again.
A later step takes one token. Both take ``step``, as :mod:`~webnn_py.runtime.generation.decoder` has it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, Final, final

import numpy as np

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import listed
from webnn_py.core.operators.operand import MLOperand
from webnn_py.onnx_models import OnnxModel, TensorInfo
from webnn_py.runtime.generation.configuration import DecoderConfiguration
from webnn_py.runtime.generation.decoder import (
    BRANCH,
    LEADING,
    LOGITS,
    STEP,
    TOKEN,
    before,
    cache_names,
    cast_inputs,
    frozen,
    likeliest,
    split_caches,
    typed,
    vocabulary_of,
)
from webnn_py.runtime.generation.growing_caches import GrowingCaches, PastLengths, cache_rows, taken_nodes
from webnn_py.runtime.graph_cache import graph_key
from webnn_py.runtime.models import DrawnModel, OnnxSource, Progress
from webnn_py.runtime.records import TensorDescriptor
from webnn_py.runtime.tensor import Tensor

HIDDEN: Final = "encoder_hidden_states"
"""The decoder's input of what the encoder gives."""

COUNTED: Final = "cache_position"
"""An input of positions without a batch, which some exports have."""

VERSION: Final = 1
"""Of the graphs that this module draws, in the keys of the graph cache."""


class EncodedSource(DrawnModel):
    """A step of a decoder that attends to an encoder, as a model for a session.

    Args:
        model: the ONNX model.
        configuration: its configuration.
        capacity: how many tokens its cache has room for.
        has_cache: whether the model takes a cache.

    Attributes:
        inputs: ``step``, and what the steps read.
        outputs: ``logits``, float32 [1, tokens]; ``token``, int32 [1]; caches.
        sizes: the sizes of symbolic dimensions that are known: none.
        caches: the inputs of keys and values of tokens, each with its output.
        cross: the inputs of keys and values of hidden states, each with the output of the first step.
        vocabulary: how many tokens there are.

    Raises:
        NotSupportedError: the model has other inputs or outputs than decoders that are supported.
    """

    def __init__(
        self, model: OnnxModel, configuration: DecoderConfiguration, capacity: int, *, has_cache: bool
    ) -> None:
        self._model = model
        self._names = configuration.names
        self._rows = cache_rows(capacity)
        self._has_cache = has_cache
        self._encoder = configuration.encoder
        self.caches = dict(cache_names(configuration))
        self.cross = {_of_encoder(past): _of_encoder(present) for past, present in self.caches.items()}
        self._check_names()
        self.vocabulary = vocabulary_of(model, self._names.logits)

    def _check_names(self) -> None:
        names, model = self._names, self._model
        pasts = [*self.caches, *self.cross] if self._has_cache else []
        outputs = [names.logits, *self.caches.values(), *([] if self._has_cache else self.cross.values())]
        needed = [names.tokens, *pasts, *([] if self._has_cache else [HIDDEN])]
        missing = [name for name in needed if name not in model.inputs]
        missing += [name for name in outputs if name not in model.outputs]
        if missing:
            raise NotSupportedError(
                f"create_generator(): {self._described()} lacks {listed(missing)}; its inputs are "
                f"{list(model.inputs)}, its outputs {list(model.outputs)}"
            )
        known = {*needed, names.positions, HIDDEN, COUNTED, BRANCH}
        known |= {*self.caches, *self.cross} if BRANCH in model.inputs else set()
        more = [name for name in model.inputs if name not in known]
        if more:
            raise NotSupportedError(
                f"create_generator(): {self._described()} has the input {listed(more)}, which is not supported; it "
                f"has {names.tokens!r}, {HIDDEN!r}, {names.positions!r}, {COUNTED!r} and past keys and values"
            )

    def _described(self) -> str:
        return "the decoder with a cache" if self._has_cache else "the decoder of the first step"

    def _described_cache(self, name: str, info: TensorInfo, length: int | str) -> TensorDescriptor:
        match info.shape:
            case (_, int(heads), _, int(size)):
                return TensorDescriptor(info.data_type, (1, heads, length, size))
        raise NotSupportedError(
            f"create_generator(): {name!r} is {info}; it must be [batch, heads, length, size], with heads and size "
            "known"
        )

    def _key(self, shapes: Mapping[str, tuple[int, ...]], experimental: Collection[str]) -> str:
        hidden = sorted(self._encoder.suppressed) if self._encoder is not None else []
        key = graph_key(self._model, shapes, {}, tuple(self.outputs), experimental)
        return f"encoded decoder {VERSION} {self._rows} {hidden} {key}"

    async def _drawn(
        self, builder: MLGraphBuilder, shapes: Mapping[str, tuple[int, ...]], progress: Progress | None
    ) -> dict[str, MLOperand]:
        new = shapes[STEP][1] - LEADING
        step = builder.input(STEP, data_type="int32", shape=shapes[STEP])
        known = builder.slice(step, [0, 0], [1, 1])
        counted = builder.add(known, builder.constant(np.arange(new, dtype=np.int32).reshape(1, new)))
        operands = {
            name: builder.input(name, data_type=typed(item), shape=shapes.get(name, item.fixed_shape))
            for name, item in self.inputs.items()
            if name != STEP
        }
        given = {
            self._names.tokens: builder.slice(step, [0, LEADING], [1, new]),
            self._names.positions: counted,
            COUNTED: builder.reshape(counted, [new]),
        }
        fed = cast_inputs(builder, self._model, given)
        return await self._drawn_with(builder, {**fed, **operands}, counted, progress)

    @abstractmethod
    async def _drawn_with(
        self,
        builder: MLGraphBuilder,
        operands: Mapping[str, MLOperand],
        counted: MLOperand,
        progress: Progress | None,
    ) -> dict[str, MLOperand]:
        """Draw the outputs.

        Args:
            builder: of the graph.
            operands: the tokens, the positions, and the graph's other inputs, by their names.
            counted: the positions of the new tokens, [1, new].
            progress: is called now and then with the number of nodes that are converted, and of all.
        """

    def _chosen(self, builder: MLGraphBuilder, logits: MLOperand) -> dict[str, MLOperand]:
        """Return the logits of the last token, and the likeliest token; some tokens never come."""
        new = logits.shape[1]
        last = builder.slice(logits, [0, new - 1, 0], [1, 1, self.vocabulary])
        row = builder.cast(builder.reshape(last, [1, self.vocabulary]), "float32")
        suppressed = () if self._encoder is None else self._encoder.suppressed
        never = [token for token in suppressed if 0 <= token < self.vocabulary]
        if never:
            may_come = np.ones([1, self.vocabulary], np.uint8)
            may_come[0, never] = 0
            row = builder.where(builder.constant(may_come), row, builder.constant(np.finfo(np.float32).min))
        return {LOGITS: row, TOKEN: likeliest(builder, row)}


@final
class FirstSource(EncodedSource):
    """The first step: from the encoder's hidden states and the first tokens to logits and caches."""

    def __init__(self, model: OnnxModel, configuration: DecoderConfiguration, capacity: int) -> None:
        super().__init__(model, configuration, capacity, has_cache=False)
        info = model.inputs[HIDDEN]
        shape: tuple[int | str, ...] = ("?", "?", "?") if info.shape is None else info.shape
        self.inputs = {
            STEP: TensorDescriptor("int32", (1, "columns")),
            HIDDEN: TensorDescriptor(info.data_type, (1, *shape[1:])),
        }
        caches = {name: self._described_cache(name, model.outputs[name], self._rows) for name in self.caches.values()}
        cross = {name: self._described_cache(name, model.outputs[name], "hidden") for name in self.cross.values()}
        self.outputs = {
            LOGITS: TensorDescriptor("float32", (1, self.vocabulary)),
            TOKEN: TensorDescriptor("int32", (1,)),
            **caches,
            **cross,
        }

    async def _drawn_with(
        self,
        builder: MLGraphBuilder,
        operands: Mapping[str, MLOperand],
        counted: MLOperand,
        progress: Progress | None,
    ) -> dict[str, MLOperand]:
        values: dict[str, Any] = {}
        if BRANCH in self._model.inputs:
            values[BRANCH] = np.array([False])
            for name in (*self.caches, *self.cross):
                item = self._described_cache(name, self._model.inputs[name], 0)
                values[name] = np.zeros(item.fixed_shape, item.data_type)
        presents = [*self.caches.values(), *self.cross.values()]
        results = await self._model.convert_in_steps(
            builder,
            {},
            values,
            input_operands=operands,
            outputs=[self._names.logits, *presents],
            progress=progress,
        )
        drawn = self._chosen(builder, results[self._names.logits])
        new = counted.shape[1]
        for name in presents:
            rest = self._rows - new if name in self.caches.values() else 0
            drawn[name] = builder.pad(results[name], [0] * 4, [0, 0, rest, 0]) if rest else results[name]
        return drawn


@final
class StepSource(EncodedSource):
    """A step with a cache: from a token to logits, and a row more in each cache."""

    def __init__(self, model: OnnxModel, configuration: DecoderConfiguration, capacity: int) -> None:
        super().__init__(model, configuration, capacity, has_cache=True)
        cached = {name: self._described_cache(name, model.inputs[name], self._rows) for name in self.caches}
        cross = {name: self._described_cache(name, model.inputs[name], "hidden") for name in self.cross}
        self.inputs = {STEP: TensorDescriptor("int32", (1, "columns")), **cached, **cross}
        self.outputs = {
            LOGITS: TensorDescriptor("float32", (1, self.vocabulary)),
            TOKEN: TensorDescriptor("int32", (1,)),
            **{self.caches[name]: item for name, item in cached.items()},
        }
        keys, values = split_caches(configuration)
        nodes, weights = taken_nodes(model, {BRANCH: True})
        lengths = PastLengths(nodes, weights, self.caches, has_sums=True)
        self._growing = GrowingCaches(nodes, keys, values, lengths)

    async def _drawn_with(
        self,
        builder: MLGraphBuilder,
        operands: Mapping[str, MLOperand],
        counted: MLOperand,
        progress: Progress | None,
    ) -> dict[str, MLOperand]:
        model, new = self._model, counted.shape[1]
        caches = {name: operands[name] for name in self.caches}
        seen = {**operands, **{name: before(builder, operands[name], new) for name in self.caches}}
        shapes: dict[str, list[int]] = {}
        if HIDDEN in model.inputs:  # which nothing reads that is computed here
            length = operands[next(iter(self.cross))].shape[2]
            shapes[HIDDEN] = [1, length, *TensorDescriptor("", model.inputs[HIDDEN].shape).fixed_shape[-1:]]
        results = await model._convert_in_steps(
            builder,
            shapes,
            {BRANCH: np.array([True])} if BRANCH in model.inputs else {},
            seen,
            [self._names.logits, *self.caches.values()],
            progress=progress,
            replacing=self._growing.replacing(builder, caches, counted, self._rows),
        )
        presents = {name: results[name] for name in self.caches.values()}
        return {**self._chosen(builder, results[self._names.logits]), **presents}

    def as_it_is(self, token: int, contents: Mapping[str, Tensor]) -> OnnxSource:
        """Return the model for one token with a cache of some length, as nothing has changed it.

        Args:
            token: the token.
            contents: the past keys and values, by the inputs' names.
        """
        model, length = self._model, contents[next(iter(self.caches))].dims[2]
        given = {
            self._names.tokens: np.array([[token]]),
            self._names.positions: np.array([[length]]),
            COUNTED: np.array([length]),
            BRANCH: np.array([True]),
        }
        if HIDDEN in model.inputs:
            rows = contents[next(iter(self.cross))].dims[2]
            given[HIDDEN] = np.zeros([1, rows, *TensorDescriptor("", model.inputs[HIDDEN].shape).fixed_shape[-1:]])
        return frozen(model, given, self._names.logits)


def _of_encoder(name: str) -> str:
    """Return the name of keys or values of hidden states, by that of those of tokens."""
    return name.replace(".decoder.", ".encoder.")
