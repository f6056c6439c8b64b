"""Sounds as inputs: how files become an input, and which are refused."""

import argparse

import numpy as np
import pytest

from webnn_py.command.declared import DeclaredInput
from webnn_py.command.failures import BadInputError
from webnn_py.command.sounds import read_sound

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("soxr")

WAVE = np.array([0, 0.5, -0.5, 0.25, -1, 0.75])


def read(path, shape, kind="float32", rate=None):
    options = argparse.Namespace(rate=rate)
    return read_sound(path, DeclaredInput("x", kind, shape), shape, options)


@pytest.fixture
def file(tmp_path):
    def write(samples, rate=16000):
        path = tmp_path / "x.wav"
        soundfile.write(path, samples, rate, "FLOAT")
        return path

    return write


@pytest.mark.parametrize("suffix", [".flac", ".ogg", ".wav"])
def test_sounds_of_usual_formats_are_read(suffix, tmp_path):
    tone = np.sin(np.arange(4000) / 20)
    soundfile.write(tmp_path / f"x{suffix}", tone, 16000)
    array, said = read(tmp_path / f"x{suffix}", (1, "samples"))
    np.testing.assert_allclose(array, tone[None], atol=0.1 if suffix == ".ogg" else 1e-4)
    assert (array.dtype, "4,000 samples at 16,000 Hz" in said) == (np.float32, True)


def test_more_samples_than_the_memory_should_hold_are_refused(tmp_path):
    path = tmp_path / "x.wav"
    soundfile.write(path, [0.0], 16000, "PCM_U8")
    head, _, _ = path.read_bytes().partition(b"data")
    with path.open("wb") as file:
        file.write(head[:4] + (2**29).to_bytes(4, "little") + head[8:] + b"data" + (2**29 - 64).to_bytes(4, "little"))
        file.truncate(2**29 + 8)
    with pytest.raises(BadInputError, match="a sound may have at most 268,435,456"):
        read(path, (1, "samples"))


def test_channels_become_their_mean(file):
    array, said = read(file(np.stack([WAVE, WAVE / 2], axis=1)), (1, "samples"))
    np.testing.assert_allclose(array[0], WAVE * 0.75, atol=1e-6)
    assert "mean of 2 channels" in said


@pytest.mark.parametrize(
    ("shape", "full"),
    [((1, 4), (1, 4)), ((4,), (4,)), ((1, 1, 9), (1, 1, 9)), (("batch", "n", 1), (1, 6, 1)), (None, (1, 6))],
)
def test_a_sound_is_cut_or_filled_to_the_length_of_the_input(shape, full, file):
    array, said = read(file(WAVE), shape)
    assert array.shape == full
    longest = max(full)
    np.testing.assert_allclose(array.reshape(-1), np.pad(WAVE, (0, 3))[:longest], atol=1e-4)
    assert ("the first 4" in said) == (longest == 4)
    assert ("silence up to 9" in said) == (longest == 9)


def test_whole_numbers_are_those_of_sixteen_bits(file):
    array, _ = read(file(WAVE), (1, "n"), "int16")
    assert array.tolist() == [[0, 16384, -16384, 8192, -32768, 24576]]


def test_another_rate_is_converted(file):
    path = file(WAVE, 44100)
    assert read(path, (1, "n"), rate=44100)[0].shape == (1, 6)
    array, said = read(path, (1, "n"), rate=88200)
    assert array.shape == (1, 12)
    assert "resampled to 88,200 Hz" in said


@pytest.mark.parametrize("new_rate", [8000, 22050, 48000])
def test_a_tone_stays_the_same_tone_at_another_rate(new_rate, file):
    rate, hertz = 16000, 500
    tone = np.sin(2 * np.pi * hertz * np.arange(rate) / rate)
    array, _ = read(file(tone), ("samples",), rate=new_rate)
    expected = np.sin(2 * np.pi * hertz * np.arange(new_rate) / new_rate)
    inner = slice(new_rate // 20, -new_rate // 20)  # a sound that begins or ends at once has all frequencies there
    np.testing.assert_allclose(array[inner], expected[inner], atol=1e-5)


@pytest.mark.parametrize(
    ("samples", "text"), [([], "has no samples"), ([0.5, np.nan], "has samples that are NaN or infinite")]
)
def test_a_sound_without_samples_or_with_others_than_numbers_is_refused(samples, text, file):
    with pytest.raises(BadInputError, match=text):
        read(file(np.array(samples)), (1, "n"))


@pytest.mark.parametrize("content", [b"", b"OggS", b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEdata\0\0\0\0"])
def test_what_is_no_sound_is_refused(content, tmp_path):
    (tmp_path / "x.wav").write_bytes(content)
    with pytest.raises(BadInputError, match="cannot be read as a sound, and may be cut: "):
        read(tmp_path / "x.wav", (1, "n"))


@pytest.mark.parametrize(
    ("shape", "kind", "text"),
    [((2, 3), "float32", "a sound needs one dimension"), ((), "float32", "a sound needs"), ((1, "n"), "uint8", "sign")],
)
def test_an_input_that_is_no_sounds_is_told(shape, kind, text, file):
    with pytest.raises(BadInputError, match=text):
        read(file(WAVE), shape, kind)
