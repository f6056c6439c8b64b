"""``webnn-py transcribe``: what is said in a recording, printed as it is understood.

Recordings are read by soundfile and resampled by soxr, of the extra ``audio``.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np
import trio
from numpy.typing import NDArray

from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.generate import check_installed, printed
from webnn_py.command.loading import opened
from webnn_py.core.distribution import install_command

if TYPE_CHECKING:
    from webnn_py.runtime.generation import Generator

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
    """

    samples: NDArray[np.float32]
    rate: int

    def at(self, rate: int) -> Sound:
        """Return the same sound at another rate.

        Raises:
            CommandFailedError: soxr is not installed.
        """
        if rate == self.rate:
            return self
        soxr = needed("soxr", "resampling sounds", install_command("audio"))
        return attrs.evolve(self, samples=soxr.resample(self.samples, self.rate, rate), rate=rate)


def transcribe(options: argparse.Namespace) -> int:
    """Write down what is said in a recording, as it is understood.

    Raises:
        BadInputError: the folder, the recording or an option cannot be used.
        CommandFailedError: the model cannot be run, or an extra is not installed.
    """
    check_installed()
    sound = decoded(options.sound)

    def heard_by(generator: Generator) -> NDArray[np.float32]:
        encoder = generator.configuration.encoder
        if encoder is None:
            raise BadInputError(
                f"{options.folder} has no encoder, so it hears nothing; webnn-py generate continues texts"
            )
        return sound.at(encoder.rate).samples

    trio.run(printed, options, options.prompt, heard_by)
    return 0


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
    return Sound(samples.mean(axis=1), rate)


def _check(path: Path, notes: str, samples: int) -> None:
    cut = CUT.search(notes)
    if cut is not None and int(cut[2]) < int(cut[1]) < UNKNOWN_LENGTH:
        raise BadInputError(
            f"{path} is cut: {int(cut[2]):,} bytes of samples are there of {int(cut[1]):,}; copy or download it again"
        )
    if samples > MOST_SAMPLES:
        raise BadInputError(f"{path} has {samples:,} samples; a sound may have at most {MOST_SAMPLES:,}")
