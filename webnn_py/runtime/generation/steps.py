"""A decoder as all conversations share it, and a step of a batch: from tokens to logits, or to the next tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import numpy as np
import trio
from numpy.typing import NDArray
from onnx import TensorProto, helper

from webnn_py.descriptors import MLOperandDataType
from webnn_py.errors import InvalidStateError
from webnn_py.runtime.generation.configuration import DecoderConfiguration
from webnn_py.runtime.generation.decoder import LEADING, LOGITS, STEP, TOKEN, DecoderSource, typed
from webnn_py.runtime.generation.sampling import MOST_ON_DEVICE, Logits
from webnn_py.runtime.session import WHILE_PENDING, InferenceSession
from webnn_py.runtime.tensor import Tensor
from webnn_py.script.buffer import MLBuffer
from webnn_py.script.graph import MLGraph
from webnn_py.timelines.promise import MLPromise

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from webnn_py.runtime.environment import Environment

SHORTEST_PROMPT: Final = 16
"""New tokens are filled up to 1, or to a power of two from this one on, each of which has a graph."""


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
        choosers: sessions that find the greatest logits, by how many.
        line: is held while one of these is made.
    """

    environment: Environment
    session: InferenceSession
    source: DecoderSource
    configuration: DecoderConfiguration
    capacity: int
    tokenizer: Tokenizer | None
    choosers: dict[int, InferenceSession] = attrs.field(factory=dict)
    line: trio.Lock = attrs.field(factory=trio.Lock)

    def finds_greatest(self, count: int) -> bool:
        """Return whether the device is a GPU that finds ``count`` of the greatest logits itself."""
        on_gpu = self.session._opened.location == "gpu-buffer"
        return on_gpu and 0 < count <= min(MOST_ON_DEVICE, self.source.vocabulary)

    async def greatest(self, logits: Tensor, count: int) -> tuple[Logits, NDArray[np.int64]]:
        """Return the greatest logits of each sequence and their tokens, in falling order."""
        session = self.choosers.get(count)
        if session is None:
            async with self.line:
                session = self.choosers.get(count)
                if session is None:
                    session = await self._made_chooser(count)
        found = await session.run({LOGITS: logits})
        return found["values"].data, found["places"].data

    async def _made_chooser(self, count: int) -> InferenceSession:
        made = await self.environment.create_session(_greatest_model(self.source.vocabulary, count))
        if self.session.released:
            made._release()
            self.session._check_usable("generate", WHILE_PENDING)
        self.choosers[count] = made
        return made

    async def release(self) -> None:
        """Release the sessions, all before it waits for the device, which may be cancelled."""
        for session in self.choosers.values():
            session._release()
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


@final
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
        self._bound: dict[tuple[int, int], BoundStep] = {}
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
            step = step_of(sequences, known, self._decoder.capacity)
            bound = self._bound.get((step.shape[1], self._side))
            if bound is None:
                bound = await self._bind(step.shape[1])
            context, logits = session._opened.context, self._others[LOGITS]
            context.write_buffer(bound.step, step)
            context.dispatch(bound.graph, bound.inputs, bound.outputs)
            wanted = [*([TOKEN] if wants_likeliest else []), *([LOGITS] if wants_logits else [])]
            try:
                reads = await MLPromise.all([context.read_buffer(bound.outputs[name]) for name in wanted])
                found = await self._decoder.greatest(logits, greatest) if greatest else None
            except InvalidStateError:
                session._check_usable("generate", WHILE_PENDING)
                raise
            self._side = bound.following
            results = dict(zip(wanted, reads, strict=True))
            return StepResult(results.get(TOKEN), results.get(LOGITS), found)

    async def _bind(self, columns: int) -> BoundStep:
        """Make the graph and the tensors of steps with ``columns`` columns, as far as they are missing.

        Raises:
            InvalidStateError: the cache is disposed of meanwhile; with it goes what was made.
        """
        try:
            return await self._made_step(columns)
        finally:
            if self._is_disposed:
                self.dispose()

    async def _made_step(self, columns: int) -> BoundStep:
        source = self._decoder.source
        shapes = {name: (self._batch, *source.inputs[name].fixed_shape) for name in source.caches}
        graph = await self._decoder.session._graph_for({STEP: (self._batch, columns), **shapes})
        is_in_place = all(graph.in_place.get(present) == past for past, present in source.caches.items())
        while len(self._sides) < (1 if is_in_place else 2):
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
        following = self._side if is_in_place else 1 - self._side
        now, later = ({name: _buffer(item) for name, item in self._sides[at].items()} for at in (self._side, following))
        results = {name: _buffer(self._others[name]) for name in (LOGITS, TOKEN)}
        outputs = {**results, **{source.caches[name]: buffer for name, buffer in later.items()}}
        step = _buffer(self._others[STEP, columns])
        bound = BoundStep(graph, step, {STEP: step, **now}, outputs, following)
        self._bound[columns, self._side] = bound
        return bound

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

    async def scramble(self) -> None:
        """Fill the cache with random numbers, which later steps must not see."""
        random = np.random.default_rng(0)
        for side in self._sides:
            for tensor in side.values():
                noise = 4 * random.standard_normal(tensor.dims, np.float32)
                await tensor.copy_from(Tensor(noise.astype(tensor.dtype)))

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
        start = max(0, min(count, len(tokens) - 1, capacity - new))
        row[0], row[1] = start, len(tokens) - 1 - start
        row[LEADING : LEADING + len(tokens) - start] = tokens[start:]
    return step


def filled_up(count: int) -> int:
    """Return how many new tokens a step has that needs ``count``."""
    return 1 if count == 1 else max(SHORTEST_PROMPT, 1 << (count - 1).bit_length())
