"""A sound as a model's input: .wav files of whole numbers, and of floats, which Python's ``wave`` does not read."""

import argparse
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.command.declared import Array, DeclaredInput
from webnn_py.command.failures import BadInputError
from webnn_py.command.loading import opened

SUFFIXES: Final = frozenset({".wav"})

Samples = NDArray[np.float64]

WHOLE_NUMBERS: Final = 1
FLOATS: Final = 3
EXTENSIBLE: Final = 0xFFFE
"""The tag of files that have their format further on."""

EXTENSIBLE_TAG: Final = EXTENSIBLE.to_bytes(2, "little")

HEADER: Final = 16
EXTENSIBLE_HEADER: Final = 26
"""The bytes of the format that are read."""

UNKNOWN_LENGTH: Final = 2**32 - 1
"""The length that programs write while they do not know it: the samples go on to the end of the file."""


@attrs.frozen(eq=False)
class Sound:
    """A sound.

    Attributes:
        samples: from -1 to 1; of several channels their mean.
        rate: samples a second.
        channels: how many there were.
    """

    samples: Samples
    rate: int
    channels: int


def read_sound(
    path: Path, declared: DeclaredInput, shape: Sequence[int | str] | None, options: argparse.Namespace
) -> tuple[Array, str]:
    """Return a sound for an input, cut or padded with silence to the input's length, and a description.

    Args:
        path: the file.
        declared: the input.
        shape: what is known of its shape.
        options: of the command line.

    Raises:
        BadInputError: the file is no .wav file, has another rate than was asked for, or the input is none of a sound's.
    """
    sound = decoded(path)
    description = f"{path}, {len(sound.samples):,} samples at {sound.rate:,} Hz"
    if sound.channels > 1:
        description += f", mean of {sound.channels} channels"
    if options.rate is not None and options.rate != sound.rate:
        if not options.resample:
            raise BadInputError(f"{path} has {sound.rate} Hz, not {options.rate}; --resample converts it")
        sound = attrs.evolve(sound, samples=resampled(sound.samples, sound.rate, options.rate), rate=options.rate)
        description += f", resampled to {options.rate:,} Hz"
    full = _shape_for(declared, shape, len(sound.samples))
    length = max(full, default=1)
    samples = sound.samples[:length]
    if length < len(sound.samples):
        description += f", the first {length:,}"
    elif length > len(sound.samples):
        samples = np.pad(samples, (0, length - len(samples)))
        description += f", silence up to {length:,}"
    if declared.dtype.kind != "f":
        if declared.dtype.kind != "i":
            raise BadInputError(
                f"input {declared.name!r} is {declared}; a sound needs floats, or whole numbers with a sign"
            )
        kind = np.iinfo(np.int8 if declared.dtype.itemsize == 1 else np.int16)
        samples = np.clip(np.rint(samples * (kind.max + 1)), kind.min, kind.max)
    return samples.astype(declared.dtype).reshape(full), description


def _shape_for(declared: DeclaredInput, shape: Sequence[int | str] | None, samples: int) -> tuple[int, ...]:
    """Return the input's shape: all dimensions but one are 1, and that one is the time."""
    if shape is None:
        return (1, samples)
    open_axes = [axis for axis, size in enumerate(shape) if isinstance(size, str)]
    long_axes = [axis for axis, size in enumerate(shape) if isinstance(size, int) and size > 1]
    if not shape or len(long_axes) > 1 or 0 in shape:
        raise BadInputError(f"input {declared.name!r} is {declared}; a sound needs one dimension, and others of 1")
    full = [size if isinstance(size, int) else 1 for size in shape]
    if not long_axes and open_axes:
        full[open_axes[-1]] = samples
    return tuple(full)


def resampled(samples: Samples, rate: int, new_rate: int) -> Samples:
    """Return the same sound at another rate, by its spectrum: what the new rate cannot have is left out."""
    length = max(1, round(len(samples) * new_rate / rate))
    spectrum = np.fft.rfft(samples)
    kept = min(len(spectrum), length // 2 + 1)
    wanted = np.zeros(length // 2 + 1, complex)
    wanted[:kept] = spectrum[:kept]
    return np.asarray(np.fft.irfft(wanted, length) * (length / len(samples)))


# --- .wav files -----------------------------------------------------------------------------------------------


@attrs.frozen
class _Format:
    tag: int
    channels: int
    rate: int
    bits: int


def decoded(path: Path) -> Sound:
    """Read a .wav file.

    Raises:
        BadInputError: it is none, or cannot be read.
    """
    with opened(path, "a .wav file") as file:
        data = file.read()
        if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
            raise BadInputError(f"{path} is no .wav file")
        found, body = _chunks(data)
        samples = _samples(found, body)
    if not len(samples):
        raise BadInputError(f"{path} has no samples")
    if not np.isfinite(samples).all():
        raise BadInputError(f"{path} has samples that are NaN or infinite, and may be damaged")
    return Sound(samples, found.rate, found.channels)


def _chunks(data: bytes) -> tuple[_Format, bytes]:
    """Return the description of the samples that the file gives, and their bytes."""
    found: _Format | None = None
    at = 12
    while at + 8 <= len(data):
        name, length = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        body = data[at + 8 : at + 8 + length]
        if name == b"fmt ":
            if len(body) < (EXTENSIBLE_HEADER if body[:2] == EXTENSIBLE_TAG else HEADER):
                raise ValueError("its header is cut; copy or download it again")
            tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            if tag == EXTENSIBLE:
                tag = struct.unpack_from("<H", body, 24)[0]
            if not channels or not rate:
                raise ValueError(f"it has {channels} channels at {rate} Hz")
            found = _Format(tag, channels, rate, bits)
        elif name == b"data":
            if found is None:
                raise ValueError("its samples come before their format")
            if len(body) < length < UNKNOWN_LENGTH:
                width = max(found.bits // 8 * found.channels, 1)
                raise ValueError(
                    f"it is cut: {len(body) // width:,} samples are there of {length // width:,}; copy or download it "
                    "again"
                )
            return found, body
        at += 8 + length + length % 2
    raise ValueError("it has no samples, and may be cut")


def _samples(found: _Format, body: bytes) -> Samples:
    width = found.bits // 8
    if found.tag == FLOATS and found.bits in (32, 64):
        values = np.frombuffer(body[: len(body) // width * width], f"<f{width}").astype(np.float64)
    elif found.tag == WHOLE_NUMBERS and found.bits in (8, 16, 24, 32):
        values = _whole_numbers(body[: len(body) // width * width], width)
    else:
        raise ValueError(f"its samples are of format {found.tag} with {found.bits} bits; PCM of 8 to 32 bits is read")
    whole = len(values) // found.channels * found.channels
    return np.asarray(values[:whole].reshape(-1, found.channels).mean(axis=1))


def _whole_numbers(body: bytes, width: int) -> Samples:
    """Return integer samples as numbers from -1 to 1; those of eight bits have no sign."""
    if width == 1:
        return (np.frombuffer(body, np.uint8) - 128.0) / 128
    # At the upper end of four bytes, so that the sign is where it belongs.
    wide = np.zeros((len(body) // width, 4), np.uint8)
    wide[:, 4 - width :] = np.frombuffer(body, np.uint8).reshape(-1, width)
    return wide.view("<i4")[:, 0] / 2.0**31
