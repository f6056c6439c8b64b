"""Recordings: read by soundfile, and resampled by soxr, of the extra ``audio``."""

import re
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.loading import opened
from webnn_py.extras import install_command

Samples = NDArray[np.float32]

MOST_SAMPLES: Final = 1 << 28
"""The most samples of all channels: a gigabyte. Some files are a thousandth as long."""

CUT: Final = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)
"""What libsndfile notes about a .wav file that has fewer bytes of samples than its header says."""

UNKNOWN_LENGTH: Final = 0x7FFF_F000
"""From this length on it is one that programs write while they do not know it."""


def decoded(path: Path) -> tuple[Samples, int]:
    """Return the samples of a recording, from -1 to 1, of several channels their mean, and how many a second has.

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
    return samples.mean(axis=1), rate


def _check(path: Path, notes: str, samples: int) -> None:
    cut = CUT.search(notes)
    if cut is not None and int(cut[2]) < int(cut[1]) < UNKNOWN_LENGTH:
        raise BadInputError(
            f"{path} is cut: {int(cut[2]):,} bytes of samples are there of {int(cut[1]):,}; copy or download it again"
        )
    if samples > MOST_SAMPLES:
        raise BadInputError(f"{path} has {samples:,} samples; a sound may have at most {MOST_SAMPLES:,}")


def resampled(samples: Samples, rate: int, new_rate: int) -> Samples:
    """Return the samples of a recording at another rate.

    Raises:
        CommandFailedError: soxr is not installed.
    """
    if rate == new_rate:
        return samples
    soxr = needed("soxr", "resampling sounds", install_command("audio"))
    resampled: Samples = soxr.resample(samples, rate, new_rate)
    return resampled
