"""A decoder as all conversations share it, and a step of a batch: from tokens to logits, or to the next tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

import attrs
import numpy as np
import trio
from numpy.typing import NDArray
from onnx import TensorProto, helper

from webnn_py.runtime.generation.configuration import DecoderConfiguration
from webnn_py.runtime.generation.decoder import LEADING, LOGITS, STEP, TOKEN, DecoderSource, typed
from webnn_py.runtime.generation.sampling import MOST_ON_DEVICE, Logits
from webnn_py.runtime.tensor import Tensor

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from webnn_py.runtime.environment import Environment
    from webnn_py.runtime.session import InferenceSession

SHORTEST_PROMPT: Final = 16
"""New tokens are filled up to 1, or to a power of two from this one on, each of which has a graph."""


@attrs.frozen(eq=False)
class LoadedDecoder:
    """What all conversations with a decoder share.

    Attributes:
        environment: has the device.
        session: runs the decoder.
        source: the decoder.
        configuration: what its folder says of it.
        capacity: how many tokens a sequence may have.
        tokenizer: makes tokens of text; None where there is none.
        choosers: sessions that find the greatest logits, by how many.
    """

    environment: Environment
    session: InferenceSession
    source: DecoderSource
    configuration: DecoderConfiguration
    capacity: int
    tokenizer: Tokenizer | None
    choosers: dict[int, InferenceSession] = attrs.field(factory=dict)

    def finds_greatest(self, count: int) -> bool:
        """Return whether the device is a GPU that finds so many of the greatest logits itself."""
        on_gpu = self.session._opened.location == "gpu-buffer"
        return on_gpu and 0 < count <= min(MOST_ON_DEVICE, self.source.vocabulary)

    async def greatest(self, logits: Tensor, count: int) -> tuple[Logits, NDArray[np.int64]]:
        """Return the greatest logits of each sequence and their tokens, in falling order."""
        session = self.choosers.get(count)
        if session is None:
            made = await self.environment.create_session(_greatest_model(self.source.vocabulary, count))
            session = self.choosers.setdefault(count, made)
        found = await session.run({LOGITS: logits})
        return found["values"].data, found["places"].data

    async def release(self) -> None:
        """Release the sessions."""
        for session in (*self.choosers.values(), self.session):
            await session.release()


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
    """What a step gives for each sequence of a batch.

    Attributes:
        likeliest: the token of the greatest logit.
        logits: all logits, if they were asked for.
        greatest: the greatest logits and their tokens, if they were asked for.
    """

    likeliest: NDArray[np.int32]
    logits: Logits | None
    greatest: tuple[Logits, NDArray[np.int64]] | None


@final
class Cache:
    """The keys and values of a batch on the device.

    A step writes new ones in the place of what it reads, on devices that can do that. Otherwise there are two sets of
    tensors, of which each step reads one and writes the other. What lies beyond a sequence's length is of no meaning,
    so a step that fails, or that nobody waits for, changes nothing.

    Args:
        engine: has the session.
        batch: how many sequences there are.
    """

    def __init__(self, engine: LoadedDecoder, batch: int) -> None:
        self._engine = engine
        self._batch = batch
        self._sides: list[dict[str, Tensor]] = []
        self._logits: Tensor | None = None
        self._step = trio.Lock()

    async def step(
        self, sequences: Sequence[Sequence[int]], known: Sequence[int], *, wants_logits: bool, greatest: int
    ) -> StepResult:
        """Run the decoder on what follows the tokens in the cache.

        Args:
            sequences: all tokens of each sequence.
            known: how many of these are in the cache; afterwards all are.
            wants_logits: whether all logits are to come to the host.
            greatest: how many of the greatest logits are to come; 0 for none.

        Raises:
            InvalidStateError: the session is released, or the device is lost.
            UnknownError: the device failed.
            UnsupportedModelError, NotSupportedError, OperationError: no graph can be made for so many tokens.
        """
        async with self._step:
            step = step_of(sequences, known, self._engine.capacity)
            names = self._engine.source.caches
            in_place = await self._engine.session._in_place_for(self._shapes(step.shape))
            is_in_place = all(in_place.get(present) == past for past, present in names.items())
            logits = await self._made(1 if is_in_place else 2)
            now, later = self._sides[0], self._sides[0 if is_in_place else 1]
            feeds = {STEP: step, **now}
            targets = {names[name]: tensor for name, tensor in later.items()}
            fetches = {LOGITS: None if wants_logits else logits, TOKEN: None, **targets}
            results = await self._engine.session.run(feeds, fetches)
            found = await self._engine.greatest(logits, greatest) if greatest else None
            if not is_in_place:
                self._sides.reverse()
            return StepResult(results[TOKEN].data, results[LOGITS].data if wants_logits else None, found)

    def _shapes(self, step: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the session's inputs."""
        inputs = self._engine.source.inputs
        return {STEP: step, **{name: (self._batch, *inputs[name].fixed_shape) for name in self._engine.source.caches}}

    async def _made(self, sides: int) -> Tensor:
        """Make the tensors that there are not yet; return that of the logits."""
        create = self._engine.environment.create_tensor
        if self._logits is None:
            dims = [self._batch, self._engine.source.vocabulary]
            self._logits = await create(data_type="float32", dims=dims, label="generation: logits")
        while len(self._sides) < sides:
            side: dict[str, Tensor] = {}
            try:
                for name in self._engine.source.caches:
                    item = self._engine.source.inputs[name]
                    dims = [self._batch, *item.fixed_shape]
                    side[name] = await create(data_type=typed(item), dims=dims, label="generation: cache")
            except BaseException:
                _dispose(side)
                raise
            self._sides.append(side)
        return self._logits

    def dispose(self) -> None:
        """Let go of the tensors."""
        for side in self._sides:
            _dispose(side)
        self._sides.clear()
        if self._logits is not None:
            self._logits.dispose()
            self._logits = None


def _dispose(side: Mapping[str, Tensor]) -> None:
    for tensor in side.values():
        tensor.dispose()


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
