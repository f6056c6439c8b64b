"""Speech is found in a recording, not in tones and silence, and the state that stays on the device is onnxruntime's."""

import wave

import hear_voices
import numpy as np
import pytest
import real_models

from spec_tests.examples.onnxruntime_peer import assert_near, open_peer, run_peer
from webnn_py.runtime import Environment

SECOND = hear_voices.RATE


@pytest.fixture
def speech(files_of):
    files_of("hear_voices")
    return hear_voices.read_wav(real_models.get("spoken_words"))


def chances_by_peer(samples):
    """The same by onnxruntime, with the state on the host."""
    peer = open_peer(real_models.get("voice_activity"))
    frame, context = hear_voices.FRAME, hear_voices.CONTEXT
    heard = np.concatenate([np.zeros(context, np.float32), samples, np.zeros(-len(samples) % frame, np.float32)])
    state = np.zeros((2, 1, 128), np.float32)
    chances = []
    for start in range(0, len(heard) - context, frame):
        results = run_peer(peer, {"input": heard[None, start : start + context + frame], "state": state})
        state = results["stateN"]
        chances.append(results["output"].item())
    return np.array(chances)


@pytest.mark.sampled(17)
async def test_every_frame_is_heard_as_onnxruntime_hears_it(ml, options, speech):
    samples = np.concatenate([speech[: 2 * SECOND], np.zeros(SECOND // 2, np.float32)])
    async with Environment(ml, **options) as env:
        found = await hear_voices.chances_of_speech(env, samples)
        await env.drain()
        statistics = env.statistics()
    assert_near(found, chances_by_peer(samples), "the chances of speech")
    assert (statistics.sessions, statistics.live_buffers) == (0, 0)
    assert statistics.host_copies == 2 * len(found), "the state came to the host"


async def test_there_is_speech_where_it_was_put(ml, speech):
    rng = np.random.default_rng(716)
    time = np.arange(2 * SECOND) / SECOND
    tone = (0.3 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)
    noise = (0.001 * rng.standard_normal(2 * SECOND)).astype(np.float32)
    words = speech[SECOND // 3 : 3 * SECOND]
    async with Environment(ml, "numpy") as env:
        chances = await hear_voices.chances_of_speech(env, np.concatenate([tone, noise, words, noise]))
    begin, end = 4, 4 + len(words) / SECOND
    spoken = list(hear_voices.spoken(chances))
    assert len(spoken) == 2, spoken
    assert all(begin - 0.1 <= start < stop <= end + 0.2 for start, stop in spoken), spoken


def test_a_recording_of_another_rate_is_refused(tmp_path):
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
        file.writeframes(bytes(2))
    with pytest.raises(ValueError, match=r"framerate=8000.*; it must have one channel, 16 bits and 16000 Hz"):
        hear_voices.read_wav(path)
