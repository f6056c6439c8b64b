"""A sound as a model's input: read by soundfile, and resampled by soxr, of the extra ``audio``."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.command.declared import Array, DeclaredInput
from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.loading import opened
from webnn_py.core.distribution import install_command

SUFFIXES: Final = frozenset({".flac", ".ogg", ".wav"})

MOST_SAMPLES: Final = 1 << 28
"""The most samples of all channels: a gigabyte. Some files are a thousandth as long."""

CUT: Final = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)
"""What libsndfile notes about a .wav file that has fewer bytes of samples than its header says."""

UNKNOWN_LENGTH: Final = 0x7FFF_F000
"""From this length on it is one that programs write while they do not know it."""


@attrs.frozen(eq=False)
class Sound:
    """A sound.

    Attributes:
        samples: from -1 to 1; of several channels their mean.
        rate: samples a second.
        channels: how many there were.
    """

    samples: NDArray[np.float32]
    rate: int
    channels: int

    def at(self, rate: int) -> "Sound":
        """Return the same sound at another rate.

        Raises:
            CommandFailedError: soxr is not installed.
        """
        if rate == self.rate:
            return self
        soxr = needed("soxr", "resampling sounds", install_command("audio"))
        return attrs.evolve(self, samples=soxr.resample(self.samples, self.rate, rate), rate=rate)


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
        BadInputError: the file is no sound, or the input is none of a sound's.
        CommandFailedError: the extra ``audio`` is not installed.
    """
    sound = decoded(path)
    description = f"{path}, {len(sound.samples):,} samples at {sound.rate:,} Hz"
    if sound.channels > 1:
        description += f", mean of {sound.channels} channels"
    if options.rate is not None and options.rate != sound.rate:
        sound = sound.at(options.rate)
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


def decoded(path: Path) -> Sound:
    """Read a sound.

    Raises:
        BadInputError: the file is none, or cannot be read.
        CommandFailedError: soundfile is not installed.
    """
    soundfile = needed("soundfile", "reading sounds", install_command("audio"))
    with opened(path, "a sound") as file:
        try:
            with soundfile.SoundFile(file) as found:
                _check(path, found.extra_info, found.frames * found.channels)
                samples = found.read(dtype="float32", always_2d=True)
                rate = found.samplerate
        except soundfile.LibsndfileError as error:
            raise BadInputError(f"{path} cannot be read as a sound, and may be cut: {error.error_string}") from error
    if not len(samples):
        raise BadInputError(f"{path} has no samples")
    if not np.isfinite(samples).all():
        raise BadInputError(f"{path} has samples that are NaN or infinite, and may be damaged")
    return Sound(samples.mean(axis=1), rate, samples.shape[1])


def _check(path: Path, notes: str, samples: int) -> None:
    cut = CUT.search(notes)
    if cut is not None and int(cut[2]) < int(cut[1]) < UNKNOWN_LENGTH:
        raise BadInputError(
            f"{path} is cut: {int(cut[2]):,} bytes of samples are there of {int(cut[1]):,}; copy or download it again"
        )
    if samples > MOST_SAMPLES:
        raise BadInputError(f"{path} has {samples:,} samples; a sound may have at most {MOST_SAMPLES:,}")
