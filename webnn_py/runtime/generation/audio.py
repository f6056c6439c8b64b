"""Sounds as encoders read them: as samples, or as the spectra that Whisper was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from webnn_py.core.message_text import listed, shown
from webnn_py.runtime.generation.configuration import EncoderConfiguration
from webnn_py.runtime.generation.steps import EncoderFeeds
from webnn_py.runtime.records import TensorDescriptor

Audio = NDArray[np.floating[Any]] | Mapping[str, NDArray[Any]]
"""Samples from -1 to 1 of one channel; or the encoder's inputs by name."""

SAMPLES: Final = "input_values"
"""The input of encoders that read samples, [batch, samples]."""

SPECTRA: Final = "input_features"
"""The input of encoders that read spectra, [batch, frequencies, spectra]."""

FLOOR: Final = 8.0
"""The powers of ten below the greatest power at which smaller ones are cut off."""

LINEAR_HERTZ: Final = 1000.0
"""The scale of the frequencies is linear up to here, and logarithmic above."""

HERTZ_OF_MEL: Final = 200 / 3
STEPS_OF_OCTAVES: Final = np.log(6.4) / 27


def encoder_feeds(
    audio: object, inputs: Mapping[str, TensorDescriptor], configuration: EncoderConfiguration
) -> EncoderFeeds:
    """Return what an encoder reads of a sound.

    Args:
        audio: samples, or the encoder's inputs by name.
        inputs: the encoder's inputs.
        configuration: has the rate, and how spectra are made.

    Raises:
        TypeError: that is none of both, or the encoder reads something else.
        ValueError: there are no samples, or more than the encoder takes.
    """
    if isinstance(audio, Mapping):
        if audio.keys() != inputs.keys() or not all(isinstance(array, np.ndarray) for array in audio.values()):
            raise TypeError(
                f"generate(): audio has {shown(list(audio))}; it must have arrays for {listed(list(inputs))}"
            )
        return {name: np.ascontiguousarray(array) for name, array in audio.items()}
    if not isinstance(audio, np.ndarray) or audio.ndim != 1 or audio.dtype.kind != "f":
        what = f"{audio.dtype} {list(audio.shape)}" if isinstance(audio, np.ndarray) else shown(audio)
        raise TypeError(
            f"generate(): audio is {what}; it must be an array of floats from -1 to 1, the samples of one channel at "
            f"{configuration.rate} Hz, or a mapping of the encoder's inputs to arrays"
        )
    if not len(audio):
        raise ValueError("generate(): audio has no samples")
    samples = np.ascontiguousarray(audio, np.float32)
    if inputs.keys() == {SAMPLES}:
        return {SAMPLES: samples[None]}
    if inputs.keys() == {SPECTRA}:
        return {SPECTRA: spectra(samples, configuration)[None]}
    raise TypeError(
        f"generate(): the encoder reads {listed(list(inputs))}; give audio as a mapping of these to arrays, since "
        f"samples are understood for {SAMPLES!r} and {SPECTRA!r} alone"
    )


def spectra(samples: NDArray[np.float32], configuration: EncoderConfiguration) -> NDArray[np.float32]:
    """Return the logarithms of a sound's power by frequencies and times, [mels, frames], filled up with silence.

    Raises:
        ValueError: the sound is longer than the frames.
    """
    hop, window, frames = configuration.hop, configuration.window, configuration.frames
    if len(samples) > hop * frames:
        raise ValueError(
            f"generate(): audio has {len(samples) / configuration.rate:.1f} s; the encoder takes at most "
            f"{hop * frames / configuration.rate:g}"
        )
    filled = np.pad(samples, (0, hop * frames - len(samples)))
    around = np.pad(filled.astype(np.float64), window // 2, mode="reflect")
    pieces = np.lib.stride_tricks.sliding_window_view(around, window)[::hop][:frames]
    shape = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    power = np.abs(np.fft.rfft(pieces * shape, axis=1)) ** 2
    found = np.log10(np.maximum(power @ filters(configuration).T, 1e-10))
    found = np.maximum(found, found.max() - FLOOR)
    return np.ascontiguousarray(((found + 4) / 4).T, np.float32)


def filters(configuration: EncoderConfiguration) -> NDArray[np.float64]:
    """Return the weight of each frequency of a spectrum in each mel, [mels, frequencies]: triangles of equal areas."""
    frequencies = np.fft.rfftfreq(configuration.window, 1 / configuration.rate)
    top = _mel(configuration.rate / 2)
    edges = _hertz(np.linspace(0.0, top, configuration.mels + 2))
    rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    areas = (edges[2:] - edges[:-2])[:, None] / 2
    return np.maximum(0.0, np.minimum(rising, falling)) / areas


def _mel(hertz: float) -> float:
    linear = LINEAR_HERTZ / HERTZ_OF_MEL
    if hertz < LINEAR_HERTZ:
        return hertz / HERTZ_OF_MEL
    return float(linear + np.log(hertz / LINEAR_HERTZ) / STEPS_OF_OCTAVES)


def _hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    linear = LINEAR_HERTZ / HERTZ_OF_MEL
    above: NDArray[np.float64] = LINEAR_HERTZ * np.exp(STEPS_OF_OCTAVES * (np.maximum(mels, linear) - linear))
    return np.where(mels < linear, mels * HERTZ_OF_MEL, above)
