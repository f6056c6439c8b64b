"""Write down what is said in a recording: Moonshine tiny in 8 bits, with its caches on the device.

    python examples/transcribe.py [WAV] [--backend NAME] [--folder FOLDER]             (pip install '.[generation]')

The encoder runs once; the decoder makes one token after the other by one graph, each step of which reads the keys and
values of the cross-attention, and adds a row to those of the tokens. The models come with the npm package
``@moonshine-ai/moonshine-js``, tokens and recording with ``useful-moonshine-onnx``; FOLDER is another model, as optimum
exports it (docs/generation.md).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import real_models
import trio
from hear_voices import RATE, Samples, read_wav

import webnn_py
from webnn_py.runtime import Environment
from webnn_py.runtime.generation import Generator, Token, create_generator, generate

CONFIG: Final = {
    "is_encoder_decoder": True,
    "decoder_num_hidden_layers": 6,
    "max_position_embeddings": 194,
    "decoder_start_token_id": 1,
    "eos_token_id": 2,
}
"""The model's ``config.json``, which the package lacks."""

TOKENS_PER_SECOND: Final = 6.5
"""More are said by nobody: the model has lost its way."""


async def load(env: Environment, folder: Path | None) -> Generator:
    """Load the model of a folder, or that of the packages."""
    if folder is not None:
        return await create_generator(env, folder)
    real_models.get("speech_encoder")  # of the same package, and so beside the decoder
    decoder, tokens = real_models.get("speech_decoder"), real_models.get("speech_tokens")
    return await create_generator(env, decoder.parent, file=decoder.name, config=CONFIG, tokenizer=tokens)


async def transcribe(generator: Generator, samples: Samples) -> list[Token]:
    """Print what is said as it is understood, and return its tokens."""
    tokens = []
    most = max(1, round(len(samples) / RATE * TOKENS_PER_SECOND))
    async for token in generate(generator, audio=samples, max_new_tokens=min(most, generator.capacity)):
        print(token.text, end="", flush=True)
        tokens.append(token)
    print()
    return tokens


async def listen(samples: Samples, given: argparse.Namespace) -> None:
    """Print what is said, and what crossed between host and device."""
    async with (
        webnn_py.open_ml() as ml,
        Environment(ml, given.backend) as env,
        await load(env, given.folder) as generator,
    ):
        before = env.statistics().host_copies
        tokens = await transcribe(generator, samples)
        print(f"{len(tokens)} tokens, {env.statistics().host_copies - before} copies between host and device")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write down a recording."""
    parser = argparse.ArgumentParser(description="Write down what is said in a recording.")
    parser.add_argument("wav", type=Path, nargs="?", help="one channel, 16 bits, 16 kHz")
    parser.add_argument("--backend")
    parser.add_argument("--folder", type=Path, help="an encoder-decoder, as optimum exports it")
    given = parser.parse_args(arguments)
    trio.run(listen, read_wav(given.wav or real_models.get("spoken_words")), given)


if __name__ == "__main__":
    real_models.run(main)
