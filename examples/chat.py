r"""Chat with a language model in the terminal: a conversation whose cache stays on the device.

    python examples/chat.py FOLDER [--backend NAME] [--turn TEMPLATE] [--stop TEXT]        (pip install '.[generation]')

FOLDER is a decoder as onnxruntime-genai's model builder or optimum exports it (docs/generation.md). What a model wants
around each message is in its documentation; ``{}`` stands for the message in ``--turn``:

    --turn '<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n' --stop '<|im_end|>'

Ctrl-C ends an answer; an empty message, the end of the input, or Ctrl-C before a message ends the conversation.
"""

import argparse
import signal
from pathlib import Path

import trio

import webnn_py
from webnn_py.runtime import Environment
from webnn_py.runtime.generation import Conversation, Generation, create_generator


async def answer(generation: Generation) -> None:
    """Print an answer as it comes, until it ends or Ctrl-C is pressed."""

    async def interrupted() -> None:
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(interrupted)
        async for token in generation:
            print(token.text, end="", flush=True)
        nursery.cancel_scope.cancel()
    print()


async def chat(conversation: Conversation, given: argparse.Namespace) -> None:
    """Take turns until a message is empty, or the conversation has filled its cache."""
    turn = given.turn.replace("\\n", "\n")
    while message := read("> "):  # not in a thread, since nothing else runs meanwhile
        try:
            generation = conversation.generate(
                turn.replace("{}", message), max_new_tokens=given.most, temperature=given.temperature, stop=given.stop
            )
        except ValueError as error:  # it is too long
            print(error)
            return
        await answer(generation)


def read(prompt: str) -> str:
    """A line that the user types; "" at the end of the input."""
    try:
        return input(prompt)
    except EOFError:
        return ""


async def main(given: argparse.Namespace) -> None:
    """Load the model and chat."""
    async with (
        webnn_py.open_ml() as ml,
        Environment(ml, given.backend) as env,
        await create_generator(env, given.folder, capacity=given.capacity) as generator,
        generator.conversation() as conversation,
    ):
        print(f"{generator.configuration.file.name} on {env.device and env.device.info}")
        await chat(conversation, given)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Chat with a language model.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backend")
    parser.add_argument("--turn", default="User: {}\\nAssistant:", help="what a message becomes (default: %(default)s)")
    parser.add_argument("--stop", action="append", default=[], help="a text at which an answer ends")
    parser.add_argument("--most", type=int, default=200, help="tokens of an answer (default: %(default)s)")
    parser.add_argument("--capacity", type=int, help="tokens of the conversation")
    parser.add_argument("--temperature", type=float)
    try:
        trio.run(main, parser.parse_args())
    except* KeyboardInterrupt:
        print()
