"""Find speech in a recording: Silero's model hears 32 ms at a time, and what it remembers stays on the device.

    python examples/hear_voices.py [WAV] [--backend NAME]

The model comes with the package ``silero-vad``, the recording with ``useful-moonshine-onnx``.
"""

import argparse
import wave
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import real_models
import trio
from numpy.typing import NDArray

import webnn_py
from webnn_py.runtime import Environment

Samples = NDArray[np.float32]
RATE: Final = 16000
FRAME: Final = 512
CONTEXT: Final = 64
"""So many samples of the frame before come with each frame."""
SPEECH: Final = 0.5
PAUSE: Final = 10
"""Frames without speech that end it."""


async def chances_of_speech(env: Environment, samples: Samples) -> NDArray[np.float32]:
    """For each frame how likely it is that somebody speaks."""
    frames = -(-len(samples) // FRAME)
    padded = np.zeros(CONTEXT + frames * FRAME, np.float32)
    padded[CONTEXT : CONTEXT + len(samples)] = samples
    chances = np.zeros(frames, np.float32)
    # The state that one frame leaves is read by the next: two tensors on the device take turns.
    before, after = [await env.create_tensor(data_type="float32", dims=[2, 1, 128]) for _ in range(2)]
    async with await env.create_session(real_models.get("voice_activity")) as session:
        for frame in range(frames):
            heard = padded[None, frame * FRAME : (frame + 1) * FRAME + CONTEXT]
            chance = chances[frame : frame + 1, None]  # written in its place
            await session.run({"input": heard, "state": before}, {"output": chance, "stateN": after})
            before, after = after, before
    before.dispose()
    after.dispose()
    return chances


def spoken(chances: NDArray[np.float32]) -> Iterator[tuple[float, float]]:
    """From when to when somebody speaks, in seconds; short pauses belong to it."""
    speech = np.flatnonzero(chances > SPEECH)
    for part in np.split(speech, np.flatnonzero(np.diff(speech) > PAUSE) + 1):
        if part.size:
            yield float(part[0]) * FRAME / RATE, float(part[-1] + 1) * FRAME / RATE


def read_wav(path: Path) -> Samples:
    """The samples of a recording, from −1 to 1.

    Raises:
        ValueError: it is not of one channel, 16 bits and 16 kHz.
    """
    with wave.open(str(path)) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            raise ValueError(f"{path} is {file.getparams()}; it must have one channel, 16 bits and {RATE} Hz")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) * np.float32(2**-15)


async def listen(samples: Samples, backend: str | None) -> None:
    """Print when somebody speaks, and what crossed between host and device."""
    async with webnn_py.open_ml() as ml, Environment(ml, backend) as env:
        chances = await chances_of_speech(env, samples)
        for start, end in spoken(chances):
            print(f"{start:5.2f} s to {end:5.2f} s")
        print(f"{len(chances)} frames, {env.statistics().host_copies} copies between host and device")


def main(arguments: Sequence[str] | None = None) -> None:
    """Listen to a recording."""
    parser = argparse.ArgumentParser(description="Find speech in a recording.")
    parser.add_argument("wav", type=Path, nargs="?", help="one channel, 16 bits, 16 kHz")
    parser.add_argument("--backend")
    given = parser.parse_args(arguments)
    trio.run(listen, read_wav(given.wav or real_models.get("spoken_words")), given.backend)


if __name__ == "__main__":
    real_models.run(main)
