"""Recordings for ``webnn-py generate --audio``: how files become samples, and which are refused."""

import struct

import numpy as np
import pytest

from webnn_py.command.failures import BadInputError
from webnn_py.command.sounds import decoded, resampled

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("soxr")

WAVE = np.array([0, 0.5, -0.5, 0.25, -1, 0.75])


@pytest.fixture
def file(tmp_path):
    def write(samples, rate=16000, subtype="FLOAT"):
        path = tmp_path / "x.wav"
        soundfile.write(path, samples, rate, subtype)
        return path

    return write


@pytest.mark.parametrize("suffix", [".flac", ".ogg", ".wav"])
def test_sounds_of_usual_formats_are_read(suffix, tmp_path):
    tone = np.sin(np.arange(4000) / 20)
    soundfile.write(tmp_path / f"x{suffix}", tone, 16000)
    samples, rate = decoded(tmp_path / f"x{suffix}")
    np.testing.assert_allclose(samples, tone, atol=0.1 if suffix == ".ogg" else 1e-4)
    assert (samples.dtype, rate) == (np.float32, 16000)


def test_more_samples_than_the_memory_should_hold_are_refused(tmp_path):
    path = tmp_path / "x.wav"
    soundfile.write(path, [0.0], 16000, "PCM_U8")
    head, _, _ = path.read_bytes().partition(b"data")
    with path.open("wb") as file:
        file.write(head[:4] + (2**29).to_bytes(4, "little") + head[8:] + b"data" + (2**29 - 64).to_bytes(4, "little"))
        file.truncate(2**29 + 8)
    with pytest.raises(BadInputError, match="a sound may have at most 268,435,456"):
        decoded(path)


def test_channels_become_their_mean(file):
    samples, _ = decoded(file(np.stack([WAVE, WAVE / 2], axis=1)))
    np.testing.assert_allclose(samples, WAVE * 0.75, atol=1e-6)


@pytest.mark.parametrize("new_rate", [8000, 16000, 22050, 48000])
def test_a_tone_stays_the_same_tone_at_another_rate(new_rate, file):
    rate, hertz = 16000, 500
    tone = np.sin(2 * np.pi * hertz * np.arange(rate) / rate)
    samples = resampled(*decoded(file(tone)), new_rate)
    expected = np.sin(2 * np.pi * hertz * np.arange(new_rate) / new_rate)
    inner = slice(new_rate // 20, -new_rate // 20)  # a sound that begins or ends at once has all frequencies there
    np.testing.assert_allclose(samples[inner], expected[inner], atol=1e-5)
    assert len(samples) == new_rate


@pytest.mark.parametrize(
    ("samples", "text"), [([], "has no samples"), ([0.5, np.nan], "has samples that are NaN or infinite")]
)
def test_a_sound_without_samples_or_with_others_than_numbers_is_refused(samples, text, file):
    with pytest.raises(BadInputError, match=text):
        decoded(file(np.array(samples)))


@pytest.mark.parametrize("content", [b"", b"OggS", b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEdata\0\0\0\0"])
def test_what_is_no_sound_is_refused(content, tmp_path):
    (tmp_path / "x.wav").write_bytes(content)
    with pytest.raises(BadInputError, match="cannot be read as a sound, and may be cut: "):
        decoded(tmp_path / "x.wav")


def test_a_sound_whose_samples_are_missing_is_refused(file):
    path = file(np.zeros(1000), subtype="PCM_16")
    whole = path.read_bytes()
    path.write_bytes(whole[: 44 + 20])
    with pytest.raises(BadInputError, match="is cut: 20 bytes of samples are there of 2,000"):
        decoded(path)
    path.write_bytes(whole[:30])
    with pytest.raises(BadInputError, match="cannot be read as a sound, and may be cut"):
        decoded(path)


def test_a_sound_of_unknown_length_goes_on_to_its_end(file):
    path = file(np.zeros(1000), subtype="PCM_16")
    whole = bytearray(path.read_bytes())
    whole[40:44] = struct.pack("<I", 2**32 - 1)
    path.write_bytes(whole)
    assert len(decoded(path)[0]) == 1000
