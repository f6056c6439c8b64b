"""``webnn-py transcribe``: what is said in a recording, printed as it is understood."""

from __future__ import annotations

import argparse

import trio

from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.generate import loaded
from webnn_py.command.sounds import Sound, decoded
from webnn_py.core.distribution import install_command


def transcribe(options: argparse.Namespace) -> int:
    """Write down what is said in a recording, as it is understood.

    Raises:
        BadInputError: the folder, the recording or an option cannot be used.
        CommandFailedError: the model cannot be run, or an extra is not installed.
    """
    needed("onnx", "reading ONNX models")
    needed("tokenizers", "making tokens of text", install_command("generation"))
    needed("webnn_py.runtime.generation", "generating text", install_command("generation"))
    trio.run(_transcribed, options, decoded(options.sound))
    return 0


async def _transcribed(options: argparse.Namespace, sound: Sound) -> None:
    async with loaded(options) as model:
        encoder = model.generator.configuration.encoder
        if encoder is None:
            raise BadInputError(
                f"{options.folder} has no encoder, so it hears nothing; webnn-py generate continues texts"
            )
        await model.print(options.prompt, options, sound.at(encoder.rate).samples)
