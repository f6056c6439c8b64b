"""Sounds as inputs: what .wav files say, and how it becomes an input."""

import argparse
import struct

import numpy as np
import pytest

from webnn_py.command.declared import DeclaredInput
from webnn_py.command.failures import BadInputError
from webnn_py.command.sounds import read_sound, resampled

WAVE = np.array([0, 0.5, -0.5, 0.25, -1, 0.75])


def wav(samples, tag, bits, *, rate=16000, channels=1, extensible=False, before=b""):
    """A file of samples that are bytes already."""
    fmt = struct.pack("<HHIIHH", tag, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits)
    if extensible:
        fmt = struct.pack("<H", 0xFFFE) + fmt[2:] + struct.pack("<HHIH", 22, bits, 0, tag) + bytes(14)
    body = b"fmt " + struct.pack("<I", len(fmt)) + fmt + before + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def whole(bits):
    numbers = np.clip(np.round(WAVE * 2 ** (bits - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype(np.int64)
    if bits == 8:
        return (numbers + 128).astype(np.uint8).tobytes()
    return b"".join(int(number).to_bytes(bits // 8, "little", signed=True) for number in numbers)


def read(path, shape, kind="float32", rate=None, *, resample=False):
    options = argparse.Namespace(rate=rate, resample=resample)
    return read_sound(path, DeclaredInput("x", kind, shape), shape, options)


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "x.wav"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize(
    ("samples", "tag", "bits"),
    [
        (whole(8), 1, 8),
        (whole(16), 1, 16),
        (whole(24), 1, 24),
        (whole(32), 1, 32),
        (WAVE.astype("<f4").tobytes(), 3, 32),
        (WAVE.astype("<f8").tobytes(), 3, 64),
    ],
    ids=["8 bits", "16 bits", "24 bits", "32 bits", "float32", "float64"],
)
def test_samples_of_every_format_are_read(samples, tag, bits, extensible, file):
    array, said = read(file(wav(samples, tag, bits, extensible=extensible)), (1, "samples"))
    assert array.shape == (1, 6)
    assert array.dtype == np.float32
    np.testing.assert_allclose(array[0], WAVE, atol=1e-6)
    assert "6 samples at 16,000 Hz" in said


def test_channels_become_their_mean(file):
    both = np.stack([WAVE, WAVE / 2], axis=1).astype("<f4").tobytes()
    array, said = read(file(wav(both, 3, 32, channels=2)), (1, "samples"))
    np.testing.assert_allclose(array[0], WAVE * 0.75, atol=1e-6)
    assert "mean of 2 channels" in said


def test_other_chunks_are_passed_over(file):
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    assert read(file(wav(whole(16), 1, 16, before=odd)), (1, "samples"))[0].shape == (1, 6)


@pytest.mark.parametrize(
    ("shape", "full"),
    [((1, 4), (1, 4)), ((4,), (4,)), ((1, 1, 9), (1, 1, 9)), (("batch", "n", 1), (1, 6, 1)), (None, (1, 6))],
)
def test_a_sound_is_cut_or_filled_to_the_length_of_the_input(shape, full, file):
    array, said = read(file(wav(whole(16), 1, 16)), shape)
    assert array.shape == full
    longest = max(full)
    np.testing.assert_allclose(array.reshape(-1), np.pad(WAVE, (0, 3))[:longest], atol=1e-4)
    assert ("the first 4" in said) == (longest == 4)
    assert ("silence up to 9" in said) == (longest == 9)


def test_whole_numbers_are_those_of_sixteen_bits(file):
    array, _ = read(file(wav(WAVE.astype("<f4").tobytes(), 3, 32)), (1, "n"), "int16")
    assert array.tolist() == [[0, 16384, -16384, 8192, -32768, 24576]]


def test_another_rate_is_refused_unless_it_may_be_converted(file):
    path = file(wav(whole(16), 1, 16, rate=44100))
    with pytest.raises(BadInputError, match="has 44100 Hz, not 16000; --resample converts it"):
        read(path, (1, "n"), rate=16000)
    assert read(path, (1, "n"), rate=44100)[0].shape == (1, 6)
    array, said = read(path, (1, "n"), rate=88200, resample=True)
    assert array.shape == (1, 12)
    assert "resampled to 88,200 Hz" in said


@pytest.mark.parametrize("new_rate", [8000, 22050, 48000])
def test_a_tone_stays_the_same_tone_at_another_rate(new_rate):
    rate, hertz = 16000, 500
    tone = np.sin(2 * np.pi * hertz * np.arange(rate) / rate)
    expected = np.sin(2 * np.pi * hertz * np.arange(new_rate) / new_rate)
    np.testing.assert_allclose(resampled(tone, rate, new_rate), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"RIFF\0\0\0\0WAVE", "it has no samples"),
        (wav(b"", 1, 16), "has no samples"),
        (wav(np.float32([0.5, np.nan]).tobytes(), 3, 32), "has samples that are NaN or infinite"),
        (wav(b"\0\0", 6, 8), "format 6 with 8 bits"),
        (wav(b"\0\0", 1, 16, channels=0), "it has 0 channels"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "its samples come before their format"),
        (b"RIFF\0\0\0\0WAVEfmt \x02\0\0\0\1\0", "cannot be read as a .wav file"),
        (b"OggS", "is no .wav file"),
    ],
)
def test_what_is_no_sound_is_told(content, text, file):
    with pytest.raises(BadInputError, match=text):
        read(file(content), (1, "n"))


@pytest.mark.parametrize(
    ("shape", "kind", "text"),
    [((2, 3), "float32", "a sound needs one dimension"), ((), "float32", "a sound needs"), ((1, "n"), "uint8", "sign")],
)
def test_an_input_that_is_no_sounds_is_told(shape, kind, text, file):
    with pytest.raises(BadInputError, match=text):
        read(file(wav(whole(16), 1, 16)), shape, kind)
