"""A decoder as all conversations share it, and a step of a batch: from tokens to logits, or to the next tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, final

import attrs
import numpy as np
import trio
from numpy.typing import NDArray
from onnx import TensorProto, helper

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.runtime.generation.configuration import DecoderConfiguration
from webnn_py.runtime.generation.decoder import LEADING, LOGITS, STEP, TOKEN, DecoderSource, typed
from webnn_py.runtime.generation.encoder_decoder import HIDDEN, FirstSource, StepSource
from webnn_py.runtime.generation.sampling import MOST_ON_DEVICE, Logits
from webnn_py.runtime.runs import ShapeKey
from webnn_py.runtime.session import WHILE_PENDING, InferenceSession
from webnn_py.runtime.tensor import Tensor

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from webnn_py.runtime.environment import Environment

RANDOM_STATES: Final = 8
"""The number of hidden states by which an encoder-decoder is checked."""

SHORTEST_PROMPT: Final = 16
"""New tokens are filled up to 1, or to a power of two from this one on, each of which has a graph."""

MOST_CHOOSERS: Final = 4
"""The most sessions that find the greatest logits which are kept for later."""


EncoderFeeds = Mapping[str, HostArray]
"""The arrays that an encoder reads, by the names of its inputs."""


class GraphUses:
    """How many caches use each graph; those of the lengths that nothing uses go, the oldest first, but for a few."""

    MOST_IDLE = 12
    """The most graphs that are kept for later, four of each session."""

    def __init__(self) -> None:
        self._counts: dict[tuple[InferenceSession, ShapeKey], int] = {}

    def begin(self, session: InferenceSession, key: ShapeKey) -> None:
        """Note a use."""
        self._counts[session, key] = self._counts.pop((session, key), 0) + 1

    def end(self, session: InferenceSession, key: ShapeKey) -> None:
        """Note the end of a use."""
        self._counts[session, key] -= 1
        idle = [item for item, count in self._counts.items() if not count]
        for found in idle[: max(0, len(idle) - self.MOST_IDLE)]:
            del self._counts[found]
            found[0]._forget(found[1])


@attrs.frozen(eq=False)
class LoadedEncoder:
    """The encoder of an encoder-decoder, and the first step of its decoder.

    Attributes:
        session: runs the encoder.
        first: runs the first step.
        source: the first step.
        uses: the graphs of these and of the later steps, for each length of audio.
    """

    session: InferenceSession
    first: InferenceSession
    source: FirstSource
    uses: GraphUses = attrs.field(factory=GraphUses)

    async def release(self) -> None:
        """Release the sessions."""
        self.first._release()
        await self.session.release()


@attrs.define(eq=False)
class Chooser:
    """A session that finds the greatest logits.

    Attributes:
        session: the session.
        users: how many runs of it have not ended.
    """

    session: InferenceSession
    users: int = 0


@attrs.frozen(eq=False)
class LoadedDecoder:
    """A decoder and its settings, shared by all conversations.

    Attributes:
        environment: has the device.
        session: runs the decoder.
        source: the decoder.
        configuration: read from its folder.
        capacity: how many tokens a sequence may have.
        tokenizer: makes tokens of text; None where there is none.
        encoder: what an encoder-decoder has in addition; None for a decoder alone.
        choosers: sessions that find the greatest logits, by how many and for how many sequences, the last used behind.
        line: is held while one of these is made.
    """

    environment: Environment
    session: InferenceSession
    source: DecoderSource | StepSource
    configuration: DecoderConfiguration
    capacity: int
    tokenizer: Tokenizer | None
    encoder: LoadedEncoder | None = None
    choosers: dict[tuple[int, int], Chooser] = attrs.field(factory=dict)
    line: trio.Lock = attrs.field(factory=trio.Lock)

    def finds_greatest(self, count: int) -> bool:
        """Return whether the device is a GPU that finds ``count`` of the greatest logits itself."""
        on_gpu = self.session._opened.location == "gpu-buffer"
        return on_gpu and 0 < count <= min(MOST_ON_DEVICE, self.source.vocabulary)

    async def greatest(self, logits: Tensor, count: int) -> tuple[Logits, NDArray[np.int64]]:
        """Return the greatest logits of each sequence and their tokens, in falling order."""
        key = count, logits.dims[0]
        chooser = self.choosers.pop(key, None)
        if chooser is None:
            async with self.line:
                chooser = self.choosers.pop(key, None) or await self._made_chooser(count)
        self.choosers[key] = chooser
        chooser.users += 1
        try:
            found = await chooser.session.run({LOGITS: logits})
        finally:
            chooser.users -= 1
            self._drop_choosers()
        return found["values"].data, found["places"].data

    async def _made_chooser(self, count: int) -> Chooser:
        made = await self.environment.create_session(_greatest_model(self.source.vocabulary, count))
        if self.session.released:
            made._release()
            self.session._check_usable("generate", WHILE_PENDING)
        return Chooser(made)

    def _drop_choosers(self) -> None:
        """Release those that were not used for longest, but for a few and for those that run."""
        idle = [key for key, chooser in self.choosers.items() if not chooser.users]
        for key in idle[: max(0, len(self.choosers) - MOST_CHOOSERS)]:
            self.choosers.pop(key).session._release()

    async def release(self) -> None:
        """Release the sessions, all before it waits for the device, which may be cancelled."""
        for chooser in self.choosers.values():
            chooser.session._release()
        self.session._release()
        if self.encoder is not None:
            await self.encoder.release()
        await self.session.release()


def _greatest_model(words: int, count: int) -> bytes:
    """Return an ONNX model that finds the greatest of some numbers."""
    value = helper.make_tensor_value_info
    outputs = [
        value("values", TensorProto.FLOAT, ["batch", count]),
        value("places", TensorProto.INT32, ["batch", count]),
    ]
    nodes = [
        helper.make_node("TopK", [LOGITS, "count"], ["values", "long"], axis=1),
        helper.make_node("Cast", ["long"], ["places"], to=TensorProto.INT32),
    ]
    counts = [helper.make_tensor("count", TensorProto.INT64, [1], [count])]
    graph = helper.make_graph(nodes, "greatest", [value(LOGITS, TensorProto.FLOAT, ["batch", words])], outputs, counts)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())


@attrs.frozen(eq=False)
class StepResult:
    """The results of a step for each sequence of a batch, as far as they were asked for.

    Attributes:
        likeliest: the token of the greatest logit; -1 where that is no finite number.
        logits: all logits.
        greatest: the greatest logits and their tokens.
    """

    likeliest: NDArray[np.int32] | None
    logits: Logits | None
    greatest: tuple[Logits, NDArray[np.int64]] | None


@attrs.frozen(eq=False)
class BoundStep:
    """A step with all its buffers, checked once.

    Attributes:
        graph: the graph.
        step: the buffer of the input ``step``.
        inputs: what it reads.
        outputs: what it writes.
        following: the number of the side of the cache that it writes.
    """

    graph: MLGraph
    step: MLBuffer
    inputs: Mapping[str, MLBuffer]
    outputs: Mapping[str, MLBuffer]
    following: int


class Cache:
    """The keys and values of a batch on the device.

    A step writes new ones in the place of what it reads, on devices that can do that. Otherwise there are two sets of
    tensors, *sides*, of which each step reads one and writes the other. What lies beyond a sequence's length is of no
    meaning, so a step that fails, or that nobody waits for, changes nothing.

    Args:
        decoder: has the session.
        batch: how many sequences there are.
    """

    def __init__(self, decoder: LoadedDecoder, batch: int) -> None:
        self._decoder = decoder
        self._batch = batch
        self._sides: list[dict[str, Tensor]] = []
        self._others: dict[object, Tensor] = {}
        self._bound: dict[tuple[bool, int, int], BoundStep] = {}
        self._side = 0
        self._step = trio.Lock()
        self._is_disposed = False

    async def step(
        self,
        sequences: Sequence[Sequence[int]],
        known: Sequence[int],
        *,
        wants_likeliest: bool,
        wants_logits: bool,
        greatest: int,
    ) -> StepResult:
        """Run the decoder on what follows the tokens in the cache.

        Args:
            sequences: all tokens of each sequence.
            known: how many of these are in the cache; afterwards all are.
            wants_likeliest: whether the likeliest token is to come to the host.
            wants_logits: whether all logits are.
            greatest: how many of the greatest logits are; 0 for none.

        Raises:
            InvalidStateError: the session is released, the cache is disposed of, or the device is lost.
            UnknownError: the device failed.
            UnsupportedModelError, NotSupportedError, OperationError: no graph can be made for this number of tokens.
        """
        async with self._step:
            session = self._decoder.session
            session._check_usable("generate")
            self._check_there()
            context, side = session._opened.context, self._side
            for is_first, step in self._steps(sequences, known):
                bound = self._bound.get((is_first, step.shape[1], side))
                if bound is None:
                    bound = await self._bind(step.shape[1], side, is_first=is_first)
                context.write_buffer(bound.step, step)
                context.dispatch(bound.graph, bound.inputs, bound.outputs)
                side = bound.following
            wanted = [*([TOKEN] if wants_likeliest else []), *([LOGITS] if wants_logits else [])]
            results = {name: _buffer(tensor) for name, tensor in self._results().items()}
            try:
                reads = await MLPromise.all([context.read_buffer(results[name]) for name in wanted])
                found = await self._decoder.greatest(self._others[LOGITS], greatest) if greatest else None
            except InvalidStateError:
                session._check_usable("generate", WHILE_PENDING)
                raise
            self._side = side
            arrays = dict(zip(wanted, reads, strict=True))
            return StepResult(arrays.get(TOKEN), arrays.get(LOGITS), found)

    def _steps(
        self, sequences: Sequence[Sequence[int]], known: Sequence[int]
    ) -> Iterable[tuple[bool, NDArray[np.int32]]]:
        """Return the inputs ``step`` of the runs that are needed; of the first step of an encoder-decoder also that."""
        return [(False, step_of(sequences, known, self._decoder.capacity))]

    async def _bind(self, columns: int, side: int, *, is_first: bool) -> BoundStep:
        """Make the graph and the tensors of steps with ``columns`` columns, as far as they are missing.

        Raises:
            InvalidStateError: the cache is disposed of meanwhile; with it goes what was made.
        """
        try:
            return await self._made_step(columns, side, is_first=is_first)
        finally:
            if self._is_disposed:
                self.dispose()

    async def _made_step(self, columns: int, side: int, *, is_first: bool) -> BoundStep:
        source = self._decoder.source
        shapes = {name: (self._batch, *source.inputs[name].fixed_shape[-3:]) for name in source.caches}
        graph, reads, writes = await self._graph(columns, shapes, is_first=is_first)
        is_in_place = is_first or all(graph.in_place.get(present) == past for past, present in source.caches.items())
        following = side if is_in_place else 1 - side
        while len(self._sides) <= max(side, following):
            self._sides.append(await self._made_side(shapes))
        others: dict[object, tuple[MLOperandDataType, list[int]]] = {
            (STEP, columns): ("int32", [self._batch, columns]),
            LOGITS: ("float32", [self._batch, source.vocabulary]),
            TOKEN: ("int32", [self._batch]),
        }
        for name, described in others.items():
            if name not in self._others:
                self._others[name] = await self._made(*described, "step")
        self._decoder.session._check_usable("generate", WHILE_PENDING)
        self._check_there()
        now, later = ({name: _buffer(item) for name, item in self._sides[at].items()} for at in (side, following))
        step = _buffer(self._others[STEP, columns])
        inputs = {STEP: step, **{name: _buffer(item) for name, item in reads.items()}, **({} if is_first else now)}
        results = {name: _buffer(item) for name, item in {**writes, **self._results()}.items()}
        outputs = {**results, **{source.caches[name]: buffer for name, buffer in later.items()}}
        bound = BoundStep(graph, step, inputs, outputs, following)
        self._bound[is_first, columns, side] = bound
        return bound

    def _results(self) -> dict[str, Tensor]:
        return {name: self._others[name] for name in (LOGITS, TOKEN)}

    async def _graph(
        self, columns: int, shapes: Mapping[str, tuple[int, ...]], *, is_first: bool
    ) -> tuple[MLGraph, Mapping[str, Tensor], Mapping[str, Tensor]]:
        """Return the graph of steps, and what else they read and write than tokens, caches and logits, by name."""
        assert not is_first  # noqa: S101 - a decoder alone has no other step
        return await self._decoder.session._graph_for({STEP: (self._batch, columns), **shapes}), {}, {}

    async def _made_side(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
        side: dict[str, Tensor] = {}
        try:
            for name, shape in shapes.items():
                side[name] = await self._made(typed(self._decoder.source.inputs[name]), shape, "cache")
        except BaseException:
            _dispose(side)
            raise
        return side

    async def _made(self, data_type: MLOperandDataType, dims: Sequence[int], what: str) -> Tensor:
        return await self._decoder.environment.create_tensor(
            data_type=data_type, dims=dims, label=f"generation: {what}"
        )

    async def contents(self, known: int) -> dict[str, Tensor]:
        """Return the keys and values of the first tokens, by the names of a step's inputs."""
        now = {name: await tensor.get_data() for name, tensor in self._sides[self._side].items()}
        return {name: Tensor(np.ascontiguousarray(array[:, :, :known])) for name, array in now.items()}

    async def scramble(self, known: int = 0) -> None:
        """Fill the cache behind its first tokens with random numbers, which later steps must not see."""
        random = np.random.default_rng(0)
        for side in self._sides:
            for tensor in side.values():
                noise = (4 * random.standard_normal(tensor.dims, np.float32)).astype(tensor.dtype)
                if known:
                    noise[:, :, :known] = (await tensor.get_data())[:, :, :known]
                await tensor.copy_from(Tensor(noise))

    def _check_there(self) -> None:
        if self._is_disposed:
            raise InvalidStateError("generate(): the cache was disposed of")

    def dispose(self) -> None:
        """Let go of the tensors, and of those that a step is about to make."""
        self._is_disposed = True
        for side in self._sides:
            _dispose(side)
        _dispose(self._others)
        self._sides.clear()
        self._others.clear()
        self._bound.clear()


@final
class CrossAttentionCache(Cache):
    """The keys and values of one sequence, which attends to an encoder's hidden states.

    The first step runs the encoder, and computes the cross-attention's keys and values, once. Each further token is a
    step of its own, of one graph.

    Args:
        decoder: has the sessions, and an encoder.
        feeds: what the encoder reads.
    """

    def __init__(self, decoder: LoadedDecoder, feeds: EncoderFeeds) -> None:
        super().__init__(decoder, 1)
        assert decoder.encoder is not None  # noqa: S101 - for type checkers: whoever has feeds has one
        self._encoder = decoder.encoder
        self._feeds = feeds
        self._hidden: dict[str, Tensor] = {}
        self._cross: dict[str, Tensor] = {}
        self._used: list[tuple[InferenceSession, ShapeKey]] = []

    @classmethod
    async def of_random(cls, decoder: LoadedDecoder) -> Self:
        """Return a cache of random hidden states."""
        self = cls(decoder, {})
        described = self._encoder.source.inputs[HIDDEN]
        noise = np.random.default_rng(1).standard_normal([1, RANDOM_STATES, *described.fixed_shape[-1:]], np.float32)
        self._hidden = {HIDDEN: await decoder.environment.create_tensor(noise.astype(described.data_type))}
        return self

    async def contents(self, known: int) -> dict[str, Tensor]:
        """Return the keys and values of the first tokens, and of the hidden states, by the names of a step's inputs."""
        cross = self._encoder.source.cross
        found = {past: Tensor(await self._cross[present].get_data()) for past, present in cross.items()}
        return {**await super().contents(known), **found}

    def _steps(
        self, sequences: Sequence[Sequence[int]], known: Sequence[int]
    ) -> Iterable[tuple[bool, NDArray[np.int32]]]:
        (tokens,), (count,) = sequences, known
        start = min(count, len(tokens) - 1)
        if start == 0:
            return [(True, np.array([[0, len(tokens) - 1, *tokens]], np.int32))]
        return [(False, np.array([[place, 0, tokens[place]]], np.int32)) for place in range(start, len(tokens))]

    async def _graph(
        self, columns: int, shapes: Mapping[str, tuple[int, ...]], *, is_first: bool
    ) -> tuple[MLGraph, Mapping[str, Tensor], Mapping[str, Tensor]]:
        cross = self._encoder.source.cross
        if not is_first:
            reads = {past: self._cross[present] for past, present in cross.items()}
            sizes = {name: tuple(tensor.dims) for name, tensor in reads.items()}
            return await self._graph_of(self._decoder.session, {STEP: (1, columns), **sizes}), reads, {}
        await self._encode()
        (hidden,) = self._hidden.values()
        graph = await self._graph_of(self._encoder.first, {STEP: (1, columns), HIDDEN: tuple(hidden.dims)})
        for name in cross.values():
            if name not in self._cross:
                described = graph.output_descriptors[name]
                self._cross[name] = await self._made(described.data_type, described.shape, "cross-attention")
        return graph, {HIDDEN: hidden}, self._cross

    async def _encode(self) -> None:
        """Run the encoder, unless it has been."""
        if not self._hidden:
            session = self._encoder.session
            described = session.input_descriptors.items()
            key = tuple([self._feeds[name].shape for name, item in described if not item.is_fixed])
            self._use(session, key)
            self._hidden = dict(await session.run(self._feeds))

    async def _graph_of(self, session: InferenceSession, shapes: Mapping[str, tuple[int, ...]]) -> MLGraph:
        self._use(session, tuple(shapes.values()))
        return await session._graph_for(shapes)

    def _use(self, session: InferenceSession, key: ShapeKey) -> None:
        if key and (session, key) not in self._used:
            self._used.append((session, key))
            self._encoder.uses.begin(session, key)

    def dispose(self) -> None:
        """Let go of the tensors and the graphs, and of those that a step is about to make."""
        super().dispose()
        _dispose(self._hidden)
        _dispose(self._cross)
        self._hidden.clear()
        self._cross.clear()
        while self._used:
            self._encoder.uses.end(*self._used.pop())


def _dispose(tensors: Mapping[Any, Tensor]) -> None:
    for tensor in tensors.values():
        tensor.dispose()


def _buffer(tensor: Tensor) -> MLBuffer:
    """Return the buffer of a tensor on the device.

    Raises:
        InvalidStateError: it was disposed of, or its device was lost.
    """
    return tensor._place("generate")[0]


def step_of(sequences: Sequence[Sequence[int]], known: Sequence[int], capacity: int) -> NDArray[np.int32]:
    """Return the input ``step`` of a decoder: [batch, 2 + new].

    All sequences get as many new tokens: those of shorter ones are followed by zeros, which later tokens overwrite in
    the cache. Where these would not fit into the cache, or nothing is new, tokens that it has are computed again.
    """
    longest = max(len(tokens) - count for tokens, count in zip(sequences, known, strict=True))
    new = min(capacity, filled_up(max(1, longest)))
    step = np.zeros([len(sequences), LEADING + new], np.int32)
    for row, tokens, count in zip(step, sequences, known, strict=True):
        length = min(len(tokens), capacity)  # the last token of a sequence that has ended need not fit
        start = max(0, min(count, length - 1, capacity - new))
        row[0], row[1] = start, length - 1 - start
        row[LEADING : LEADING + length - start] = tokens[start:length]
    return step


def filled_up(count: int) -> int:
    """Return how many new tokens a step has that needs ``count``."""
    return 1 if count == 1 else max(SHORTEST_PROMPT, 1 << (count - 1).bit_length())
