"""``Generator``: a decoder, its tokenizer and its settings, ready for conversations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

import attrs
import trio

from webnn_py.core.descriptors import converted, unsigned_long
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.handle import Handle
from webnn_py.core.message_text import shown
from webnn_py.onnx_models import OnnxModel
from webnn_py.runtime.environment import Environment
from webnn_py.runtime.generation.audio import Audio, encoder_feeds
from webnn_py.runtime.generation.checks import check_growing, check_hiding
from webnn_py.runtime.generation.configuration import DecoderConfiguration, read_configuration
from webnn_py.runtime.generation.conversation import Conversation, Generation, Prompt, is_one
from webnn_py.runtime.generation.decoder import DecoderSource
from webnn_py.runtime.generation.encoder_decoder import FirstSource, StepSource
from webnn_py.runtime.generation.steps import Cache, CrossAttentionCache, EncoderFeeds, LoadedDecoder, LoadedEncoder
from webnn_py.runtime.generation.tokens import load_tokenizer
from webnn_py.runtime.models import OnnxSource, Progress
from webnn_py.runtime.session import InferenceSession, SessionOptions

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MOST_SEQUENCES: Final = 1024
"""Of a conversation."""


@final
class Generator(Handle):
    """A decoder, its tokenizer and its settings; made by :func:`create_generator`.

    ``async with generator:`` closes it at the end.
    """

    _made_by: ClassVar[str] = "create_generator()"

    _decoder: LoadedDecoder
    _conversations: dict[Conversation, None]
    _closed: bool

    @classmethod
    def _create(cls, decoder: LoadedDecoder) -> Self:
        self = cls.__new__(cls)
        self._decoder = decoder
        self._conversations = {}
        self._closed = False
        return self

    @property
    def configuration(self) -> DecoderConfiguration:
        """The configuration, read from the model's folder."""
        return self._decoder.configuration

    @property
    def capacity(self) -> int:
        """How many tokens a sequence may have."""
        return self._decoder.capacity

    @property
    def tokenizer(self) -> Tokenizer | None:
        """Makes tokens of text; None where there is none."""
        return self._decoder.tokenizer

    @property
    def session(self) -> InferenceSession:
        """The session that runs the decoder: for ``profile()`` and ``check_finite()``."""
        return self._decoder.session

    @property
    def closed(self) -> bool:
        """Return whether it was closed."""
        return self._closed

    def conversation(self, batch: int = 1, *, audio: Audio | None = None) -> Conversation:
        """Begin sequences that keep what was computed on the device until the conversation is closed.

        Args:
            batch: how many sequences are computed together.
            audio: what the encoder of an encoder-decoder reads, which has one sequence: samples from -1 to 1 of one
                channel at the configuration's rate; or an array for each input of the encoder, by name.

        Raises:
            TypeError: ``batch`` is no integer; or ``audio`` is no sound, or is missing, or there is no encoder.
            ValueError: ``batch`` is out of range, or ``audio`` is longer than the encoder takes.
            InvalidStateError: the generator is closed.
        """
        if self._closed:
            raise InvalidStateError("conversation(): the generator is closed")
        count = converted("conversation(): batch", unsigned_long, batch)
        if not 1 <= count <= MOST_SEQUENCES:
            raise ValueError(f"conversation(): batch is {count}; it must be from 1 to {MOST_SEQUENCES}")
        feeds = self._encoder_feeds(audio)
        if feeds is not None and count != 1:
            raise ValueError(f"conversation(): batch is {count}; an encoder-decoder has one sequence for each sound")
        return Conversation._create(self._decoder, self._conversations, count, feeds)

    def _encoder_feeds(self, audio: object) -> EncoderFeeds | None:
        """Return what the encoder reads; None where there is none."""
        encoder = self._decoder.encoder
        if encoder is None:
            if audio is not None:
                raise TypeError("generate(): audio is for encoder-decoders; the model has no encoder")
            return None
        if audio is None:
            raise TypeError("generate(): audio is missing; the model has an encoder, which reads it")
        configuration = self.configuration.encoder
        assert configuration is not None  # noqa: S101 - for type checkers: it was loaded by it
        return encoder_feeds(audio, encoder.session.input_descriptors, configuration)

    async def prepare(self, prompt_tokens: int = 1, *, audio: Audio | None = None) -> None:
        """Compile the graphs of a prompt and of the tokens after it; otherwise the first call does.

        Args:
            prompt_tokens: the number of tokens of the prompt.
            audio: for an encoder-decoder a sound of the length to prepare for.

        Raises:
            TypeError: ``prompt_tokens`` is no integer, or ``audio`` no sound.
            ValueError: it is out of range.
            InvalidStateError: the generator is closed, or the device is lost.
            UnsupportedModelError, NotSupportedError, OperationError: the model cannot be converted or compiled.
        """
        count = converted("prepare(): prompt_tokens", unsigned_long, prompt_tokens)
        if not 1 <= count <= self.capacity:
            raise ValueError(f"prepare(): prompt_tokens is {count}; it must be from 1 to {self.capacity}, the capacity")
        if self._closed:
            raise InvalidStateError("prepare(): the generator is closed")
        feeds = self._encoder_feeds(audio)
        cache = Cache(self._decoder, 1) if feeds is None else CrossAttentionCache(self._decoder, feeds)
        try:
            for known, length in ((0, count), (count, count + 1)):
                if length <= self.capacity:
                    await cache.step([[0] * length], [known], wants_likeliest=True, wants_logits=False, greatest=0)
        finally:
            cache.dispose()

    async def close(self) -> None:
        """Close the conversations and release the session; waits for the device. Raises nothing."""
        self._closed = True
        for conversation in list(self._conversations):
            conversation.close()
        await self._decoder.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def _described(self) -> str:
        state = ", closed" if self._closed else ""
        return (
            f"{self.configuration.file.name}, {self.capacity} tokens, {len(self._conversations)} conversations{state}"
        )


async def create_generator(  # noqa: PLR0913 - as many options as a decoder's folder leaves open
    environment: Environment,
    folder: str | os.PathLike[str],
    *,
    file: str | None = None,
    config: Mapping[str, Any] | None = None,
    capacity: int | None = None,
    tokenizer: str | os.PathLike[str] | Tokenizer | None = "tokenizer.json",
    progress: Progress | None = None,
) -> Generator:
    """Load a decoder with its configuration and its tokenizer, and compile the step of one token.

    Args:
        environment: has the device.
        folder: has the model as onnxruntime-genai or Hugging Face's optimum exports it.
        file: the model's file in the folder, where the configuration does not say it; of an encoder-decoder the
            decoder that has a cache.
        config: what ``config.json`` has, in its place.
        capacity: how many tokens a sequence may have, its prompt included, at most as many as the model knows; 2048 by
            default, or what the model knows if that is less.
        tokenizer: a ``tokenizers.Tokenizer``, which is trusted; or the path of its file, in the folder if it is
            relative; or None for prompts of tokens alone.
        progress: is called now and then with the number of nodes that are converted, and of all.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: the folder's files are malformed, its tokenizer may lengthen texts without measure, or ``capacity``
            is out of range.
        OSError: a file cannot be read.
        ImportError: the extra ``onnx``, or for a tokenizer ``generation``, is not installed.
        NotSupportedError: the model has other inputs, outputs or caches than decoders that are supported; or there is
            no such device.
        UnsupportedModelError: WebNN, or the importer, cannot do something that the model asks for.
        OperationError: the device cannot compile it.
        InvalidStateError: the environment is closed.
    """
    if not isinstance(environment, Environment):
        raise TypeError(f"create_generator(): environment is {shown(environment)}; it must be an Environment")
    for name, value in (("folder", folder), *([] if file is None else [("file", file)])):
        if not isinstance(value, str | os.PathLike):
            raise TypeError(f"create_generator(): {name} is {shown(value)}; it must be a path")
    if config is not None and not isinstance(config, Mapping):
        raise TypeError(f"create_generator(): config is {shown(config)}; it must be a mapping, as config.json has it")
    path = Path(folder)
    configuration = await trio.to_thread.run_sync(read_configuration, path, file, config)
    room = configuration.capacity(capacity)
    loaded = await _tokenizer(path, tokenizer)
    options = SessionOptions(frozenset(), enable_graph_capture=False, progress=progress)
    if configuration.encoder is not None:
        return await _created_with_encoder(environment, configuration, room, loaded, options)
    source = await trio.to_thread.run_sync(_source, configuration, room)
    session = await environment._open_session("create_generator", source, options)
    generator = Generator._create(LoadedDecoder(environment, session, source, configuration, room, loaded))
    try:
        await generator.prepare()
        if source.hides:
            await check_hiding(generator._decoder)
        if source.grows:
            await check_growing(generator._decoder, source, Cache(generator._decoder, 1))
    except BaseException:
        session._release()
        raise
    return generator


async def _created_with_encoder(
    environment: Environment,
    configuration: DecoderConfiguration,
    capacity: int,
    tokenizer: Tokenizer | None,
    options: SessionOptions,
) -> Generator:
    """Return the generator of an encoder-decoder, whose step with a cache has been compared with the model's own."""
    encoder, first, later = await trio.to_thread.run_sync(_encoded_sources, configuration, capacity)
    opened: list[InferenceSession] = []
    try:
        for source in (encoder, first, later):
            on_device = frozenset(source.outputs if source is encoder else ())
            given = attrs.evolve(options, on_device=on_device)
            opened.append(await environment._open_session("create_generator", source, given))
        loaded_encoder = LoadedEncoder(opened[0], opened[1], first)
        decoder = LoadedDecoder(environment, opened[2], later, configuration, capacity, tokenizer, loaded_encoder)
        await check_growing(decoder, later, await CrossAttentionCache.of_random(decoder))
    except BaseException:
        for session in opened:
            session._release()
        raise
    return Generator._create(decoder)


def generate(
    generator: Generator, prompt: Prompt | Sequence[Prompt] = "", *, audio: Audio | None = None, **options: Any
) -> Generation:
    """Generate tokens by one prompt, or by several that are computed together; or transcribe audio.

    ``async for token in generate(generator, "Once upon a time"): print(token.text, end="")``

    Args:
        generator: the decoder.
        prompt: a text, or tokens; or a list of these, which are computed together. Without it sequences begin with the
            configuration's tokens.
        audio: what the encoder of an encoder-decoder reads, as for :meth:`Generator.conversation`.
        **options: as for :meth:`Conversation.generate`.

    Returns:
        The tokens, as they come. What is on the device goes with the last one, with an exception, or with
        :meth:`Generation.aclose`.

    Raises:
        TypeError, ValueError: as for :meth:`Conversation.generate`.
        InvalidStateError: the generator is closed.
    """
    if not isinstance(generator, Generator):
        raise TypeError(f"generate(): generator is {shown(generator)}; it must be what create_generator() gives")
    several: Any = [prompt] if is_one(prompt) else prompt
    if not isinstance(several, Sequence) or not several:
        raise TypeError(f"generate(): prompt is {shown(prompt)}; it must be a text, tokens, or a list of these")
    conversation = generator.conversation(len(several), audio=audio)
    try:
        generation = conversation.generate(several, **options)
    except BaseException:
        conversation.close()
        raise
    generation._owns = True
    return generation


async def _tokenizer(folder: Path, given: str | os.PathLike[str] | Tokenizer | None) -> Tokenizer | None:
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        return await trio.to_thread.run_sync(load_tokenizer, folder / given)
    if not (hasattr(given, "encode_batch_fast") and hasattr(given, "decode")):
        raise TypeError(
            f"create_generator(): tokenizer is {shown(given)}; it must be the path of a tokenizer.json, a "
            "tokenizers.Tokenizer or None"
        )
    return given


def _encoded_sources(configuration: DecoderConfiguration, capacity: int) -> tuple[OnnxSource, FirstSource, StepSource]:
    """Load the models of an encoder-decoder; runs in a worker thread."""
    files = configuration.encoder
    assert files is not None  # noqa: S101 - for type checkers
    models = {path: OnnxModel.load(path, narrow_int64=True) for path in {files.file, files.first, configuration.file}}
    encoder = OnnxSource(models[files.file], {}, {}, [next(iter(models[files.file].outputs))])
    first = FirstSource(models[files.first], configuration, capacity)
    later = StepSource(models[configuration.file], configuration, capacity)
    for model in models.values():
        model.read_weights()
    return encoder, first, later


def _source(configuration: DecoderConfiguration, capacity: int) -> DecoderSource:
    """Load the model; runs in a worker thread."""
    model = OnnxModel.load(configuration.file, narrow_int64=True)  # so that GPUs without int64 compute it, too
    source = DecoderSource(model, configuration, capacity)
    model.read_weights()
    return source
