"""``Conversation``: sequences that grow, with their cache on the device; ``Generation``: the tokens of one call."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, ClassVar, Final, Literal, Self, TypeGuard, final

import attrs
import numpy as np
import trio

from webnn_py.core.descriptors import converted, unsigned_long
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.handle import Handle
from webnn_py.core.message_text import shown
from webnn_py.core.operators.idl import boolean
from webnn_py.runtime.generation.sampling import Sampling, no_finite_logits
from webnn_py.runtime.generation.steps import Cache, CrossAttentionCache, EncoderFeeds, LoadedDecoder, StepResult
from webnn_py.runtime.generation.tokens import TextStream, Token

Prompt = str | Sequence[int]
"""A text, or tokens."""

Finish = Literal["end", "stop", "length"]

BYTES: Final = bytes | bytearray | memoryview
"""Sequences of integers that are no tokens."""

MOST_CHARACTERS: Final = 128
"""The most characters of a text for each token that there is room for: tokens of large vocabularies have as many."""

MOST_STOPS: Final = 64
LONGEST_STOP: Final = 256
"""In characters: each token's text is compared with the beginnings of all stops."""


@attrs.frozen
class GenerationRequest:
    """The checked arguments of a call of ``generate()``.

    Attributes:
        prompts: the new tokens of each sequence, or the text that they are made of.
        most: how many tokens each sequence gets at most; None for what the configuration and the capacity leave.
        sampling: how tokens are chosen.
        seed: begins the random numbers; None for others each time.
        stops: texts at which a sequence ends.
        wants_logits: whether tokens come with their logits.
    """

    prompts: tuple[str | tuple[int, ...], ...]
    most: int | None
    sampling: Sampling
    seed: int | None
    stops: tuple[str, ...]
    wants_logits: bool


@final
class Conversation(Handle):
    """Sequences of tokens whose keys and values stay on the device; made by :meth:`Generator.conversation`.

    ``async with generator.conversation() as conversation:`` closes it at the end.
    """

    _made_by: ClassVar[str] = "Generator.conversation()"

    _decoder: LoadedDecoder
    _open: dict[Conversation, None]
    _cache: Cache
    _tokens: tuple[list[int], ...]
    _known: list[int]
    _turn: int
    _closed: bool

    @classmethod
    def _create(
        cls,
        decoder: LoadedDecoder,
        open_conversations: dict[Conversation, None],
        batch: int,
        feeds: EncoderFeeds | None = None,
    ) -> Self:
        self = cls.__new__(cls)
        self._decoder = decoder
        self._open = open_conversations
        self._cache = Cache(decoder, batch) if feeds is None else CrossAttentionCache(decoder, feeds)
        self._tokens = tuple([] for _ in range(batch))
        self._known = [0] * batch
        self._turn = 0
        self._closed = False
        open_conversations[self] = None
        return self

    @property
    def batch(self) -> int:
        """How many sequences there are."""
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[tuple[int, ...], ...]:
        """All tokens of each sequence, those of prompts included."""
        return tuple(map(tuple, self._tokens))

    @property
    def closed(self) -> bool:
        """Return whether it was closed."""
        return self._closed

    def generate(  # noqa: PLR0913 - as many options as choosing tokens has
        self,
        prompt: Prompt | Sequence[Prompt] = "",
        *,
        max_new_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int | None = None,
        stop: str | Iterable[str] = (),
        logits: bool = False,
    ) -> Generation:
        """Continue the sequences by a prompt, and then by the tokens that the model chooses.

        All arguments are checked before this returns, except how many tokens a text has: the first token makes them,
        in a thread, and computes the prompt. What is in the cache is not computed again. A call that takes the place of
        an earlier one ends that.

        Args:
            prompt: a text, or tokens; of a batch a list of these, one for each sequence. An empty text begins with the
                tokens that the configuration begins sequences with. In a conversation that has begun both may be empty.
            max_new_tokens: the most tokens that each sequence gets; by default, what the configuration and the capacity
                leave.
            temperature: the divisor of logits before a token is drawn; 0 takes the likeliest. Where neither this
                nor ``top_k`` nor ``top_p`` is given, the configuration says whether tokens are drawn.
            top_k: the number of likeliest tokens of which one is drawn; 0 for all.
            top_p: draw from those of the likeliest tokens that together have this probability.
            repetition_penalty: positive logits of earlier tokens are divided by it, negative ones multiplied; from
                1e-30 to 1e30.
            seed: makes the random numbers the same each time; each sequence of a batch has its own.
            stop: a text of at most 256 characters, or at most 64 of them, at which a sequence ends; it is no part of
                the text.
            logits: whether each token comes with the logits it was chosen by.

        Raises:
            TypeError: an argument is of the wrong type, or a text is given and there is no tokenizer.
            ValueError: an argument is out of range, or the sequences do not fit the capacity; the latter also by the
                first token.
            InvalidStateError: the conversation is closed.
        """
        self._check_open()
        prompts = self._prompts(prompt)
        most = (
            None if max_new_tokens is None else converted("generate(): max_new_tokens", unsigned_long, max_new_tokens)
        )
        if most == 0:
            raise ValueError("generate(): max_new_tokens is 0; it must be at least 1")
        sampling = self._sampling(temperature, top_k, top_p, repetition_penalty)
        number = None if seed is None else converted("generate(): seed", unsigned_long, seed)
        stops = self._stops(stop)
        wants_logits = converted("generate(): logits", boolean, logits)
        return Generation._create(self, GenerationRequest(prompts, most, sampling, number, stops, wants_logits))

    # --- arguments -------------------------------------------------------------------------------------------

    def _prompts(self, prompt: Any) -> tuple[str | tuple[int, ...], ...]:
        several = [prompt] if is_one(prompt) else prompt
        if isinstance(several, BYTES) or not isinstance(several, Sequence):
            raise TypeError(f"generate(): prompt is {shown(prompt)}; it must be a text, tokens, or a list of these")
        if len(several) != self.batch:
            raise ValueError(f"generate(): prompt has {len(several)} sequences; the conversation has {self.batch}")
        return tuple(self._prompt(item, row) for row, item in enumerate(several))

    def _prompt(self, prompt: object, row: int) -> str | tuple[int, ...]:
        """Return the tokens of a prompt, or its text where these are yet to be made."""
        configuration, is_begin = self._decoder.configuration, not self._tokens[row]
        if prompt == "" and (configuration.encoder is not None or not is_begin):
            prompt = configuration.begin if is_begin else ()
        if isinstance(prompt, str):
            self._check_text(prompt, row)
            return prompt
        if _is_list(prompt) and len(prompt) > self._decoder.capacity:
            raise self._too_long(row, len(prompt))
        if not _is_list(prompt) or not all(map(_is_integer, prompt)):
            raise TypeError(f"generate(): prompt of sequence {row} is {shown(prompt)}; it must be a text or tokens")
        return self._checked(prompt, row)

    def _check_text(self, text: str, row: int) -> None:
        if self._decoder.tokenizer is None:
            raise TypeError("generate(): prompt is a text, and the generator has no tokenizer; give tokens")
        capacity = self._decoder.capacity
        if len(text) > MOST_CHARACTERS * capacity:
            raise ValueError(
                f"generate(): prompt of sequence {row} has {len(text)} characters; it may have at most "
                f"{MOST_CHARACTERS * capacity} at the capacity of {capacity} tokens; shorten it, or give tokens"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"generate(): prompt {shown(text)} is no text: {error}") from error

    def _checked(self, tokens: Sequence[int], row: int) -> tuple[int, ...]:
        words = self._decoder.source.vocabulary
        if not len(tokens) and not self._tokens[row]:
            raise ValueError(f"generate(): prompt of sequence {row} is empty; a sequence begins with a token")
        for token in tokens:
            if not 0 <= token < words:
                raise ValueError(f"generate(): prompt has the token {token}; the model's are from 0 to {words - 1}")
        return tuple(map(int, tokens))

    def _tokenized(self, prompts: Iterable[str | tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of prompts; runs in a worker thread."""
        return tuple(
            self._checked(self._tokens_of(prompt, row), row) if isinstance(prompt, str) else prompt
            for row, prompt in enumerate(prompts)
        )

    def _tokens_of(self, text: str, row: int) -> Sequence[int]:
        """Return the tokens of a text, or those that sequences begin with where a new one has no other."""
        tokenizer, configuration = self._decoder.tokenizer, self._decoder.configuration
        assert tokenizer is not None  # noqa: S101 - for type checkers: it was checked with the text
        is_begin = not self._tokens[row]
        # What a tokenizer puts around a text ends it, too, for encoder-decoders.
        has_special = is_begin and configuration.encoder is None
        # Of a batch: encode() itself keeps other threads waiting.
        (encoding,) = tokenizer.encode_batch_fast([text], add_special_tokens=has_special)
        return encoding.ids or (configuration.begin if is_begin else ())

    def _limits(self, prompts: Sequence[Sequence[int]], asked: int | None) -> tuple[int, ...]:
        """Return how many tokens each sequence may get."""
        capacity = self._decoder.capacity
        limits = []
        for row, (old, new) in enumerate(zip(self._tokens, prompts, strict=True)):
            length = len(old) + len(new)
            needed = length + (1 if asked is None else asked) - 1  # the last token is not computed on
            if needed > capacity:
                raise self._too_long(row, length, "" if asked is None else f" and gets {asked}")
            longest = self._decoder.configuration.search.max_length
            usual = capacity + 1 - length if longest is None else min(capacity + 1, longest) - length
            limits.append(max(1, usual) if asked is None else asked)
        return tuple(limits)

    def _too_long(self, row: int, length: int, more: str = "") -> ValueError:
        return ValueError(
            f"generate(): sequence {row} has {length} tokens{more}; that is beyond the capacity of "
            f"{self._decoder.capacity}, which create_generator(capacity=…) makes as large as "
            f"{self._decoder.configuration.context_length}"
        )

    def _sampling(
        self, temperature: float | None, top_k: int | None, top_p: float | None, penalty: float | None
    ) -> Sampling:
        usual = self._decoder.configuration.search
        draws = usual.do_sample or any(item is not None for item in (temperature, top_k, top_p))
        sampling = Sampling(
            (usual.temperature if draws else 0.0) if temperature is None else _number("temperature", temperature),
            (usual.top_k if draws else 0) if top_k is None else converted("generate(): top_k", unsigned_long, top_k),
            (usual.top_p if draws else 1.0) if top_p is None else _number("top_p", top_p),
            usual.repetition_penalty if penalty is None else _number("repetition_penalty", penalty),
        )
        for name, is_right, allowed in (
            ("temperature", sampling.temperature >= 0, "at least 0"),
            ("top_p", 0 < sampling.top_p <= 1, "above 0 and at most 1"),
            ("repetition_penalty", 1e-30 <= sampling.repetition_penalty <= 1e30, "from 1e-30 to 1e30"),
        ):
            if not is_right:
                raise ValueError(f"generate(): {name} is {getattr(sampling, name)}; it must be {allowed}")
        return sampling

    def _stops(self, stop: Any) -> tuple[str, ...]:
        is_one = isinstance(stop, str) or not isinstance(stop, Iterable)
        several: tuple[str, ...] = (stop,) if is_one else tuple(islice(stop, MOST_STOPS + 1))
        if len(several) > MOST_STOPS:
            raise ValueError(f"generate(): stop has more than {MOST_STOPS} texts")
        if not all(isinstance(item, str) and item for item in several):
            raise TypeError(f"generate(): stop is {shown(stop)}; it must be a text, or several, none of them empty")
        longest = max(map(len, several), default=0)
        if longest > LONGEST_STOP:
            raise ValueError(f"generate(): stop has {longest} characters; it may have at most {LONGEST_STOP}")
        if several and self._decoder.tokenizer is None:
            raise TypeError("generate(): stop needs a tokenizer, and the generator has none")
        return several

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidStateError("generate(): the conversation is closed")

    # --- the end ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the cache; a generation that is under way ends. The second call does nothing. Raises nothing."""
        self._closed = True
        self._turn += 1
        self._cache.dispose()
        self._open.pop(self, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.close()

    def _described(self) -> str:
        lengths = ", ".join(str(len(tokens)) for tokens in self._tokens)
        return f"of {lengths} tokens, at most {self._decoder.capacity}{', closed' if self._closed else ''}"


@final
class Generation(Handle):
    """The tokens of one call of ``generate()``, for ``async for``.

    A wait for a token may be cancelled, and the loop may be left at any time: a conversation then has the tokens that
    have come. ``async with`` or :meth:`aclose` ends it at once.
    """

    _made_by: ClassVar[str] = "generate()"

    _conversation: Conversation
    _request: GenerationRequest
    _prompts: tuple[tuple[int, ...], ...] | None
    _limits: tuple[int, ...]
    _turn: int
    _ready: deque[Token]
    _active: list[int]
    _counts: list[int]
    _streams: list[TextStream]
    _random: list[np.random.Generator]
    _owns: bool
    _begun: bool
    _is_awaited: bool

    @classmethod
    def _create(cls, conversation: Conversation, request: GenerationRequest) -> Self:
        self = cls.__new__(cls)
        self._conversation = conversation
        self._request = request
        self._prompts = None
        self._ready = deque()
        self._active = list(range(conversation.batch))
        self._counts = [0] * conversation.batch
        self._owns = False
        self._begun = False
        self._is_awaited = False
        seeds = np.random.SeedSequence(request.seed).spawn(conversation.batch)
        self._random = [np.random.default_rng(seed) for seed in seeds]
        if not any(isinstance(prompt, str) for prompt in request.prompts):
            self._set_prompts(conversation._tokenized(request.prompts))
        conversation._turn += 1
        self._turn = conversation._turn
        return self

    def _set_prompts(self, prompts: tuple[tuple[int, ...], ...]) -> None:
        """Take the tokens of the prompts.

        Raises:
            ValueError: they do not fit the capacity.
        """
        conversation = self._conversation
        self._limits = conversation._limits(prompts, self._request.most)
        self._prompts = prompts
        befores = [(*old[-TextStream.CONTEXT :], *new) for old, new in zip(conversation._tokens, prompts, strict=True)]
        tokenizer = conversation._decoder.tokenizer
        self._streams = [TextStream(tokenizer, self._request.stops, before) for before in befores]

    @property
    def prompt_tokens(self) -> tuple[int, ...]:
        """How many tokens the prompt of each sequence has.

        Raises:
            InvalidStateError: a prompt is a text, and no token has come yet.
        """
        if self._prompts is None:
            raise InvalidStateError("prompt_tokens: the prompt's tokens are made by the first token; wait for it")
        return tuple(map(len, self._prompts))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Token:
        """Return the next token of a sequence; those of a batch come in turns.

        Raises:
            StopAsyncIteration: all sequences have ended, or this was closed.
            ValueError: the text of a prompt has more tokens than the capacity.
            InvalidStateError: a later call of the conversation has taken the place of this one, the generator is
                closed, or the device is lost.
            OperationError: the model's logits are no numbers.
            UnknownError: the device failed.
            RuntimeError: another task waits for a token of this generation.
        """
        if self._is_awaited:
            raise RuntimeError("generate(): another task waits for the next token of this generation")
        self._is_awaited = True
        try:
            if self._active and not self._ready:
                await self._advance()
            else:
                await trio.lowlevel.checkpoint()
        except BaseException:
            self._end()
            raise
        finally:
            self._is_awaited = False
        if not self._ready:  # it had ended, or another task has closed it meanwhile
            self._end()
            raise StopAsyncIteration
        token = self._ready.popleft()
        if not self._ready and not self._active:
            self._end()
        return token

    async def _advance(self) -> None:
        """Take a step of all sequences that go on; nothing comes of it if :meth:`aclose` is called meanwhile."""
        conversation, request = self._conversation, self._request
        self._check_turn()
        if self._prompts is None:
            prompts = await trio.to_thread.run_sync(conversation._tokenized, request.prompts)
            if not self._active:
                return
            self._check_turn(" while a token was pending")
            self._set_prompts(prompts)
        decoder, sampling = conversation._decoder, request.sampling
        banned = self._banned()
        is_plain = sampling.repetition_penalty == 1 and not any(banned)
        on_device = is_plain and not sampling.is_greedy and decoder.finds_greatest(sampling.top_k)
        on_host = not on_device and not (is_plain and sampling.is_greedy)
        sequences = self._sequences()
        try:
            result = await conversation._cache.step(
                sequences,
                conversation._known,
                wants_likeliest=not (on_host or on_device),
                wants_logits=on_host or request.wants_logits,
                greatest=sampling.top_k if on_device else 0,
            )
        except InvalidStateError:
            if not self._active:
                return
            self._check_turn(" while a token was pending")
            raise
        if not self._active:
            return
        self._check_turn(" while a token was pending")
        chosen = {row: self._chosen(result, row, sequences[row], banned[row]) for row in self._active}
        for row, tokens in enumerate(sequences):
            if not self._begun:
                conversation._tokens[row][:] = tokens
            conversation._known[row] = len(tokens)  # last: what is not known is computed again
        self._begun = True
        for row, token in chosen.items():
            conversation._tokens[row].append(token)
            self._ready.append(self._token(row, token, result))

    def _check_turn(self, when: str = "") -> None:
        if self._turn != self._conversation._turn:
            why = "was closed" if self._conversation._closed else "went on by a later generate()"
            raise InvalidStateError(f"generate(): its conversation {why}{when}")

    def _sequences(self) -> list[list[int]]:
        """Return the tokens of each sequence, at first with its prompt."""
        old = self._conversation._tokens
        if self._begun:
            return list(old)
        assert self._prompts is not None  # noqa: S101 - for type checkers: they were made before
        return [[*tokens, *prompt] for tokens, prompt in zip(old, self._prompts, strict=True)]

    def _banned(self) -> list[tuple[int, ...]]:
        """Return the tokens that each sequence may not get yet: first ones, and ends while it is too short."""
        configuration = self._conversation._decoder.configuration
        least, words = configuration.search.min_length, self._conversation._decoder.source.vocabulary
        is_first = configuration.encoder is not None and not any(self._conversation._tokens)
        never_first = configuration.encoder.suppressed_first if configuration.encoder is not None and is_first else ()
        if not least and not never_first:
            return [()] * self._conversation.batch
        banned = [
            {*never_first, *(configuration.end_tokens if len(tokens) < least else ())} for tokens in self._sequences()
        ]
        return [tuple(token for token in tokens if 0 <= token < words) for tokens in banned]

    def _chosen(self, result: StepResult, row: int, earlier: Sequence[int], banned: Iterable[int]) -> int:
        sampling, random = self._request.sampling, self._random[row]
        if result.greatest is not None:
            logits, tokens = result.greatest
            return sampling.drawn(logits[row], tokens[row], random)
        if result.likeliest is not None:
            token = int(result.likeliest[row])
            if token < 0:
                raise no_finite_logits("NaN or infinite")
            return token
        assert result.logits is not None  # noqa: S101 - for type checkers: one of them was asked for
        return sampling.chosen(sampling.adjusted(result.logits[row], earlier, banned), random)

    def _token(self, row: int, token: int, result: StepResult) -> Token:
        """Return a token that has come; its sequence may end with it."""
        stream = self._streams[row]
        text = stream.push(token)
        self._counts[row] += 1
        finish: Finish | None = None
        if token in self._conversation._decoder.configuration.end_tokens:
            finish = "end"
        elif self._counts[row] == self._limits[row]:
            finish = "length"
        if finish is not None and not stream.is_stopped:
            text += stream.rest()
        if stream.is_stopped:
            finish = "stop"
        if finish is not None:
            self._active.remove(row)
        logits = result.logits[row].copy() if self._request.wants_logits and result.logits is not None else None
        return Token(token, text, row, finish, logits)

    # --- the end ---------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End it: no more tokens come. The second call does nothing. Raises nothing."""
        self._end()
        self._ready.clear()
        await trio.lowlevel.checkpoint()

    def _end(self) -> None:
        self._active.clear()
        if self._owns:
            self._conversation.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if getattr(self, "_owns", False) and not self._conversation._closed:
            self._conversation._decoder.session._opened.owner.run_soon(self._conversation.close)

    def _described(self) -> str:
        state = f"{len(self._active)} sequences go on" if self._active else "ended"
        return f"{sum(self._counts)} tokens, {state}"


def is_one(prompt: object) -> bool:
    """Return whether a value is one prompt, a text or tokens, rather than a list of prompts; looks at one item only."""
    return isinstance(prompt, str) or (_is_list(prompt) and (not len(prompt) or _is_integer(prompt[0])))


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return (isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim == 1)) and not isinstance(
        value, str | BYTES
    )


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        with suppress(OverflowError):  # of an integer
            number = float(value)
            if math.isfinite(number):
                return number
    raise TypeError(f"generate(): {name} is {shown(value)}; it must be a finite number")
