"""Speech is written down as onnxruntime does, token by token, and what it is made of stays on the device."""

import json
import re

import hear_voices
import numpy as np
import pytest
import real_models
import transcribe

from spec_tests.support import depth
from spec_tests.support.onnxruntime_encoder_decoder import OnnxruntimeEncoderDecoder
from webnn_py.runtime import Environment

WORDS = "ever tried ever failed no matter try again fail again fail better"


@pytest.fixture
def speech(files_of):
    files_of("transcribe")
    return hear_voices.read_wav(real_models.get("spoken_words"))


@pytest.fixture(scope="session")
def peer_tokens(real_file):
    """Return the tokens of a recording by onnxruntime's sessions, found once."""
    made = {}

    def tokens(samples):
        if len(samples) not in made:
            peer = OnnxruntimeEncoderDecoder(real_file("speech_decoder").parent)
            made[len(samples)] = peer.decode({"input_values": samples[None]}, [1], 60, end=2)[0]
        return made[len(samples)]

    return tokens


@pytest.fixture(autouse=True)
def _only_at_full_depth(pytestconfig):
    if not depth.is_full(pytestconfig):
        pytest.skip("a trained model of speech, which full depth has; quick depth has what the example prints")


@pytest.fixture
async def env(ml, options, backend, pytestconfig):
    if backend == "wgpu" and not depth.is_thorough(pytestconfig):
        pytest.skip("a trained model of speech, which takes a minute on software Vulkan: thorough depth has it")
    async with Environment(ml, **options) as environment:
        yield environment


async def test_the_tokens_are_those_of_onnxruntimes_sessions(env, speech, peer_tokens, capsys):
    async with await transcribe.load(env, None) as generator:
        before = env.statistics().host_copies
        tokens = await transcribe.transcribe(generator, speech)
        # The recording goes to the device; each step sends a token, and gets one.
        assert env.statistics().host_copies - before == 1 + 2 * len(tokens)
    await env.drain()
    statistics = env.statistics()
    assert (statistics.sessions, statistics.live_buffers) == (0, 0)
    assert [token.id for token in tokens] == peer_tokens(speech)
    assert re.sub(r"[^a-z ]", "", capsys.readouterr().out.lower()).strip() == WORDS


async def test_a_folder_with_its_configuration(ml, speech, peer_tokens, tmp_path):
    for name in ("speech_encoder", "speech_decoder", "speech_tokens"):
        path = real_models.get(name)
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(transcribe.CONFIG))
    begin = np.ascontiguousarray(speech[:48000])
    async with Environment(ml, "numpy") as env, await transcribe.load(env, tmp_path) as generator:
        tokens = await transcribe.transcribe(generator, begin)
    assert [token.id for token in tokens] == peer_tokens(begin)
