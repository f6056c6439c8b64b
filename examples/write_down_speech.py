"""Write down what is said in a recording: Moonshine tiny in 8 bits, with a cache of keys and values on the device.

    python examples/write_down_speech.py [WAV] [--backend NAME]

The decoder makes one token after the other. What it has computed of earlier ones, their keys and values, stays on the
device and grows by blocks of tokens, since each length of it needs a graph of its own. The models come with the npm
package ``@moonshine-ai/moonshine-js``, tokens and recording with ``useful-moonshine-onnx``.
"""

import argparse
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import real_models
import trio
from hear_voices import RATE, Samples, read_wav
from numpy.typing import NDArray

import webnn_py
from webnn_py.onnx_models import OnnxModel
from webnn_py.runtime import Environment, InferenceSession, Tensor, TensorLocation

BLOCK: Final = 8
FIRST, LAST = 1, 2
TOKENS_PER_SECOND: Final = 6.5
"""More are said by nobody: the model has lost its way."""


class Decoder:
    """Makes tokens of what the encoder has heard, until it is closed."""

    def __init__(self, heard: Tensor, first: InferenceSession, later: InferenceSession) -> None:
        self._heard = heard
        self._sessions = first, later
        self._cache: dict[str, Tensor] = {}

    @classmethod
    async def open(cls, env: Environment, stack: AsyncExitStack, heard: Tensor) -> "Decoder":
        """A decoder whose sessions and cache go with the stack: one session begins the cache, another goes on."""
        path = real_models.get("speech_decoder")
        frozen = {name: np.zeros([1, 8, 0, 36], np.float32) for name in OnnxModel.load(path).inputs if "past" in name}
        sessions = []
        for model, values in ((onnx.load(path), frozen), (without_encoder_outputs(onnx.load(path)), {})):
            caches = [item.name for item in model.graph.output if item.name != "logits"]
            on_device: dict[str, TensorLocation] = dict.fromkeys(caches, "ml-tensor")
            session = await env.create_session(
                model.SerializeToString(),
                input_values={"use_cache_branch": np.array([not values]), **values},
                preferred_output_location=on_device,
            )
            sessions.append(await stack.enter_async_context(session))
        decoder = cls(heard, *sessions)
        stack.callback(decoder.close)
        return decoder

    async def next_token(self, tokens: Sequence[int]) -> int:
        """The likeliest token after these; the last block of them is computed, earlier ones are in the cache."""
        done = (len(tokens) - 1) // BLOCK * BLOCK
        block = np.zeros([1, BLOCK], np.int64)
        block[0, : len(tokens) - done] = tokens[done:]
        feeds = {"input_ids": block, "encoder_hidden_states": self._heard, **self._cache}
        is_full = len(tokens) == done + BLOCK
        results = await self._sessions[done > 0].run(feeds, None if is_full else ["logits"])
        logits = results.pop("logits").data
        for name, tensor in results.items():
            self._keep(name.replace("present", "past_key_values"), tensor)
        return int(logits[0, len(tokens) - done - 1].argmax())

    def _keep(self, name: str, tensor: Tensor) -> None:
        if name in self._cache:
            self._cache[name].dispose()
        self._cache[name] = tensor

    def close(self) -> None:
        """Let go of the cache."""
        for tensor in self._cache.values():
            tensor.dispose()
        self._cache.clear()


def without_encoder_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the outputs that are empty once there is a cache: what was heard does not change."""
    kept = [item for item in model.graph.output if ".encoder." not in item.name]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    return model


async def tokens_of(env: Environment, samples: Samples) -> list[int]:
    """The tokens of what is said."""
    encoder = await env.create_session(real_models.get("speech_encoder"), preferred_output_location="ml-tensor")
    async with encoder:
        heard = (await encoder.run({"input_values": samples[None]}))["last_hidden_state"]
    tokens = [FIRST]
    async with AsyncExitStack() as stack:
        stack.callback(heard.dispose)
        decoder = await Decoder.open(env, stack, heard)
        while tokens[-1] != LAST and len(tokens) < len(samples) / RATE * TOKENS_PER_SECOND:
            tokens.append(await decoder.next_token(tokens))
    return tokens


def text_of(tokens: Sequence[int], path: Path) -> str:
    """The text of tokens, by a file ``tokenizer.json``; some tokens are single bytes of UTF-8."""
    vocabulary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    pieces = {number: piece for piece, number in vocabulary.items()}
    words = (pieces[token] for token in tokens if token not in {FIRST, LAST})
    data = (bytes([int(word[3:5], 16)]) if word.startswith("<0x") else word.encode() for word in words)
    return b"".join(data).decode(errors="replace").replace("▁", " ").strip()


async def listen(samples: NDArray[np.float32], backend: str | None) -> None:
    """Print what is said, and what crossed between host and device."""
    async with webnn_py.open_ml() as ml, Environment(ml, backend) as env:
        tokens = await tokens_of(env, samples)
        print(text_of(tokens, real_models.get("speech_tokens")))
        print(f"{len(tokens)} tokens, {env.statistics().host_copies} copies between host and device")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write down a recording."""
    parser = argparse.ArgumentParser(description="Write down what is said in a recording.")
    parser.add_argument("wav", type=Path, nargs="?", help="one channel, 16 bits, 16 kHz")
    parser.add_argument("--backend")
    given = parser.parse_args(arguments)
    trio.run(listen, read_wav(given.wav or real_models.get("spoken_words")), given.backend)


if __name__ == "__main__":
    real_models.run(main)
