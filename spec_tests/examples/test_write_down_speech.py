"""Speech is written down as onnxruntime does, and what it is made of stays on the device."""

import re

import hear_voices
import numpy as np
import onnx
import pytest
import real_models
import write_down_speech
from write_down_speech import BLOCK, FIRST, LAST

from spec_tests.examples.onnxruntime_peer import open_peer, run_peer
from webnn_py.runtime import Environment

WORDS = "ever tried ever failed no matter try again fail again fail better"
MOST_APART = 0.1
"""Of what is heard, in the root mean square. Each layer rounds to 8 bits: onnxruntime differs from itself by 0.045
between two levels of optimization, by 0.037 when the sound is a millionth louder."""


@pytest.fixture
def speech(files_of):
    files_of("hear_voices")
    files_of("write_down_speech")
    return hear_voices.read_wav(real_models.get("spoken_words"))


def tokens_by_peer(heard):
    """The tokens of what an encoder has heard, with the cache on the host; in blocks, too, since these are rounded."""
    peer = open_peer(real_models.get("speech_decoder"))
    cache = {item.name: np.zeros((1, 8, 0, 36), np.float32) for item in peer.get_inputs() if "past" in item.name}
    tokens = [FIRST]
    while tokens[-1] != LAST:
        done = (len(tokens) - 1) // BLOCK * BLOCK
        ids = np.zeros((1, BLOCK), np.int64)
        ids[0, : len(tokens) - done] = tokens[done:]
        feeds = {"input_ids": ids, "encoder_hidden_states": heard, "use_cache_branch": np.array([done > 0]), **cache}
        results = run_peer(peer, feeds)
        if len(tokens) == done + BLOCK:
            fresh = {name.replace("present", "past_key_values"): value for name, value in results.items()}
            cache = {name: fresh[name] if fresh[name].size else cache[name] for name in cache}
        tokens.append(int(results["logits"][0, len(tokens) - done - 1].argmax()))
    return tokens


async def test_the_words_and_the_tokens_are_onnxruntimes(ml, speech, monkeypatch):
    heard = []
    open_decoder = write_down_speech.Decoder.open

    async def watched(env, stack, tensor):
        heard.append(await tensor.get_data())
        return await open_decoder(env, stack, tensor)

    monkeypatch.setattr(write_down_speech.Decoder, "open", watched)
    async with Environment(ml, "numpy") as env:
        tokens = await write_down_speech.tokens_of(env, speech)
        await env.drain()
        statistics = env.statistics()
    assert tokens == tokens_by_peer(heard[0])
    text = write_down_speech.text_of(tokens, real_models.get("speech_tokens"))
    assert re.sub(r"[^a-z ]", "", text.lower()) == WORDS
    assert (statistics.sessions, statistics.live_buffers) == (0, 0)
    assert statistics.host_copies == 2 * len(tokens), (
        "the cache came to the host"
    )  # one each of the sound and its answer
    (expected,) = run_peer(open_peer(real_models.get("speech_encoder")), {"input_values": speech[None]}).values()
    apart = np.sqrt(((heard[0] - expected) ** 2).mean() / (expected**2).mean())
    assert apart < MOST_APART, f"what is heard differs by {apart:.3f}"


def test_tokens_that_are_bytes_make_letters_together(real_file):
    path = real_file("speech_tokens")
    assert write_down_speech.text_of([FIRST, 18274, 1898, 29892, LAST], path) == "Ever tried,"
    euro = [3 + byte for byte in "€".encode()]  # bytes are the tokens after the three special ones
    assert write_down_speech.text_of([18274, *euro], path) == "Ever€"


def test_only_outputs_of_what_was_heard_are_dropped():
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in ("logits", "a.encoder.key", "a.decoder.key")]
    model = onnx.helper.make_model(onnx.helper.make_graph([], "model", [], outputs))
    left = write_down_speech.without_encoder_outputs(model).graph.output
    assert [item.name for item in left] == ["logits", "a.decoder.key"]
