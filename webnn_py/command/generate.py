"""``webnn-py generate``: continue a text, or write down a recording, and print it token by token."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from webnn_py import open_ml
from webnn_py.command.device_options import device_options
from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.layout import in_time
from webnn_py.command.loading import model_errors
from webnn_py.command.printing import print_json, print_lines
from webnn_py.command.progress import bar
from webnn_py.command.sounds import Samples, decoded, resampled
from webnn_py.core.message_text import visible
from webnn_py.extras import install_command
from webnn_py.javascript.words import say
from webnn_py.runtime import Environment

if TYPE_CHECKING:
    from webnn_py.runtime.generation import Generation, Token

OPTIONS: Final = ("max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty", "seed", "stop")
"""The options of the command that ``generate()`` has by the same names."""

LAID_OUT: Final = re.compile(r"([\n\t])")
"""The control characters that are printed unchanged."""


@attrs.define
class GeneratedText:
    """A text that is being generated.

    Attributes:
        device: where it is.
        load: seconds until the model was ready.
        prompt_tokens: how many tokens the prompt has, from the first token on.
        text: the text so far.
        tokens: the tokens so far.
        finish: why it has ended.
        times: when each token came, in seconds from the start of the call.
    """

    device: str
    load: float
    prompt_tokens: int = 0
    text: str = ""
    tokens: list[int] = attrs.field(factory=list)
    finish: str | None = None
    times: list[float] = attrs.field(factory=list)

    @property
    def tokens_per_second(self) -> float | None:
        """Return the speed after the first token; None if there are too few."""
        seconds = self.times[-1] - self.times[0] if self.times else 0.0
        return (len(self.times) - 1) / seconds if seconds > 0 else None


def generate(options: argparse.Namespace) -> int:
    """Continue a text, or write down what is said in a recording, and print it as it comes.

    Raises:
        BadInputError: the folder, the recording or an option cannot be used.
        CommandFailedError: the model cannot be run, or an extra is not installed.
    """
    needed("onnx", "reading ONNX models")
    needed("tokenizers", "making tokens of text", install_command("generation"))
    needed("webnn_py.runtime.generation", "generating text", install_command("generation"))
    if options.prompt is None and options.audio is None:
        raise BadInputError("give --prompt, the text to continue, or --audio, the recording to write down")
    sound = None if options.audio is None else decoded(options.audio)
    prompt = _prompt_of_stdin() if options.prompt == "-" else options.prompt or ""
    trio.run(_generated, options, prompt, sound)
    return 0


def _prompt_of_stdin() -> str:
    if sys.stdin is None:
        raise BadInputError("--prompt - reads the prompt from the standard input, which is closed")
    try:
        return sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"--prompt - cannot read the standard input: {error}") from error


async def _generated(options: argparse.Namespace, prompt: str, sound: tuple[Samples, int] | None) -> None:
    """Load the model of a folder, generate a text, and print it as it comes."""
    from webnn_py.runtime.generation import create_generator, generate  # noqa: PLC0415 - an extra

    since = perf_counter()
    async with open_ml() as ml, Environment(ml, **device_options(options)) as environment:
        with _refusals(options), bar(f"loading {options.folder.name}", "nodes") as advance:
            generator = await create_generator(
                environment, options.folder, file=options.file, capacity=options.capacity, progress=advance
            )
        async with generator:
            encoder = generator.configuration.encoder
            audio = None if sound is None else sound[0]
            if sound is not None and encoder is not None:
                audio = resampled(*sound, encoder.rate)
            given = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
            with _refusals(options):
                generation = generate(generator, prompt, audio=audio, **given)
            device = environment.device
            result = GeneratedText(str(device and device.info), perf_counter() - since)
            await _print_tokens(generation, result, options)


async def _print_tokens(generation: Generation, result: GeneratedText, options: argparse.Namespace) -> None:
    """Print each token, and at the end, also after Ctrl-C, the speed."""
    since = perf_counter()
    try:
        async for token in _tokens(generation, options):
            result.prompt_tokens = generation.prompt_tokens[0]
            result.times.append(perf_counter() - since)
            result.tokens.append(token.id)
            result.text += token.text
            result.finish = token.finish
            if not options.json:
                say(_laid_out(token.text), end="")
    finally:
        await generation.aclose()
        if not options.json and result.tokens:
            say("")
            print_lines(_summary(result), sys.stderr)
    if options.json:
        print_json(_as_json(result))


async def _tokens(generation: Generation, options: argparse.Namespace) -> AsyncIterator[Token]:
    """Yield the tokens of a generation, of which the first may refuse the prompt."""
    with _refusals(options):
        first = await anext(generation)
    yield first
    async for token in generation:
        yield token


def _laid_out(text: str) -> str:
    """Return a text with control characters as codes, except ends of lines and tabs."""
    return "".join(part if LAID_OUT.fullmatch(part) else visible(part) for part in LAID_OUT.split(text))


def _summary(result: GeneratedText) -> Iterator[str]:
    speed = "" if result.tokens_per_second is None else f", then {result.tokens_per_second:.4g} tokens/s"
    yield f"device  {result.device}"
    yield (
        f"times   load {in_time(result.load)}, prompt of {result.prompt_tokens} tokens "
        f"{in_time(result.times[0])}{speed}; {len(result.tokens)} tokens"
    )


def _as_json(result: GeneratedText) -> dict[str, Any]:
    return {
        "device": result.device,
        "text": result.text,
        "tokens": result.tokens,
        "finish": result.finish,
        "prompt_tokens": result.prompt_tokens,
        "times": {
            "load_ms": 1e3 * result.load,
            "prompt_ms": 1e3 * result.times[0] if result.times else None,
            "tokens_per_second": result.tokens_per_second,
        },
    }


@contextmanager
def _refusals(options: argparse.Namespace) -> Iterator[None]:
    """Make what the folder's files and the options are refused for the command's own errors."""
    try:
        with model_errors(options.folder):
            yield
    except (TypeError, ValueError) as error:
        raise BadInputError(re.sub(r"^(create_generator|generate)\(\): ", "", str(error))) from error
