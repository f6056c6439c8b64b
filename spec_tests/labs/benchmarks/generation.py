"""Times of a decode step, host to host, in turn with onnxruntime's own session on the same file.

    python -m spec_tests.labs.benchmarks.generation FOLDER [--backend NAME] [--provider NAME] [--capacity N]

``python -m spec_tests.models.decoder_models FOLDER --size half-billion`` writes the folder. onnxruntime decodes twice:
with caches that grow on the host, and with caches that are bound to its device; on a GPU the latter is what counts.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import onnxruntime
import trio

from spec_tests.models.decoder_models import SIZES, Size
from spec_tests.support.onnxruntime_decoder import TYPES, OnnxruntimeDecoder
from webnn_py import open_ml
from webnn_py.runtime import Environment
from webnn_py.runtime.generation import create_generator


class Times:
    """Seconds by the wall clock, and of processors, of each step."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.wall: list[float] = []
        self.processor: list[float] = []
        self.tokens: list[int] = []

    def add(self, wall: float, processor: float, token: int) -> None:
        self.wall.append(wall)
        self.processor.append(processor)
        self.tokens.append(token)

    def __str__(self) -> str:
        wall, processor = (1e3 * statistics.median(item) for item in (self.wall, self.processor))
        return f"{self.name:<28} {wall:8.3f} ms a token, {processor:8.3f} ms of processors, {1e3 / wall:7.1f} tokens/s"


DEVICES = {"CPUExecutionProvider": "cpu", "CUDAExecutionProvider": "cuda", "WebGpuExecutionProvider": "webgpu"}
"""Where the caches of a provider are."""


class BoundDecoder:
    """onnxruntime's own session, whose caches stay on its device.

    On the CPU they have the capacity, and each step shares them with the next; on a GPU each step makes longer ones.
    """

    def __init__(self, folder: Path, size: Size, capacity: int, provider: str) -> None:
        path = str(folder / "model.onnx")
        self._session = onnxruntime.InferenceSession(path, providers=[provider], enable_fallback=False)
        self._binding = self._session.io_binding()
        self._device = DEVICES[provider]
        pasts = [item for item in self._session.get_inputs() if item.name.startswith("past")]
        self._pasts = [item.name for item in pasts]
        length = capacity if self._device == "cpu" else 0
        shape = (1, size.kv_heads, length, size.head)
        empty = np.zeros(shape, TYPES[pasts[0].type])
        self._caches = [onnxruntime.OrtValue.ortvalue_from_numpy(empty.copy()) for _ in self._pasts]
        self._count = 0

    def logits(self, tokens: list[int]) -> np.ndarray:
        self._count += len(tokens)
        self._binding.clear_binding_inputs()
        self._binding.bind_cpu_input("input_ids", np.array([tokens]))
        self._binding.bind_cpu_input("attention_mask", np.ones((1, self._count), np.int64))
        for name, cache in zip(self._pasts, self._caches, strict=True):
            self._binding.bind_ortvalue_input(name, cache)
        # Only now: caches that get_outputs() gave are places within the list of outputs, which this clears.
        self._binding.clear_binding_outputs()
        self._binding.bind_output("logits", "cpu")
        for name, cache in zip(self._pasts, self._caches, strict=True):
            present = name.replace("past_key_values", "present")
            if self._device == "cpu":
                self._binding.bind_ortvalue_output(present, cache)
            else:
                self._binding.bind_output(present, self._device)
        self._session.run_with_iobinding(self._binding)
        logits, *presents = self._binding.get_outputs()
        if self._device != "cpu":  # where they are in the caches' own arrays, which these do not keep alive
            self._caches = presents
        return logits.numpy()[0, -1]

    def close(self) -> None:
        """Release the caches before the session, whose allocators they need."""
        self._caches.clear()
        del self._binding
        del self._session


def decoded(step: Callable[[list[int]], np.ndarray], prompt: list[int], count: int, times: Times) -> Iterator[None]:
    """Decode greedily, and pause after each step."""
    token = int(step(prompt).argmax())
    for _ in range(count):
        began, ran = time.perf_counter(), time.process_time()
        token = int(step([token]).argmax())
        times.add(time.perf_counter() - began, time.process_time() - ran, token)
        yield


async def measured(
    given: argparse.Namespace, size: Size, peers: Mapping[str, Callable[[list[int]], np.ndarray]]
) -> tuple[int, list[Times]]:
    """Take each step here and by each peer; return the first token, and the times of all, ours first."""
    prompt = [int(token) for token in np.random.default_rng(1).integers(0, size.words, given.prompt)]
    ours, *rows = [Times(name) for name in ("webnn_py", *peers)]
    runs = [decoded(step, prompt, given.steps, row) for step, row in zip(peers.values(), rows, strict=True)]
    async with (
        open_ml() as ml,
        Environment(ml, given.backend) as env,
        await create_generator(env, given.folder, capacity=given.capacity, tokenizer=None) as generator,
        generator.conversation() as conversation,
    ):
        print(f"{env.device and env.device.info}; onnxruntime {onnxruntime.__version__}, {given.provider}")
        print(f"a prompt of {given.prompt}, {given.steps} steps, a capacity of {given.capacity}")
        first, *_ = [token async for token in conversation.generate(prompt, max_new_tokens=1)]
        generation = conversation.generate([], max_new_tokens=given.steps)
        for left in reversed(range(given.steps)):
            for run in runs:
                next(run)
            began, ran = time.perf_counter(), time.process_time()
            token = await anext(generation)
            ours.add(time.perf_counter() - began, time.process_time() - ran, token.id)
            if token.finish == "end" and left:  # where the peers go on
                generation = conversation.generate([], max_new_tokens=left)
    return first.id, [ours, *rows]


async def main(given: argparse.Namespace) -> None:
    """Take each step three times: here, and twice in onnxruntime alone."""
    size, provider = SIZES[given.size], given.provider
    host = OnnxruntimeDecoder(given.folder, size, providers=[provider], enable_fallback=False)
    with closing(BoundDecoder(given.folder, size, given.capacity, provider)) as bound:
        peers = {"onnxruntime, caches on host": host.logits, "onnxruntime, bound caches": bound.logits}
        first, rows = await measured(given, size, peers)
    for row in rows:
        print(row)
    ours = statistics.median(rows[0].wall), statistics.median(rows[0].processor)
    for row in rows[1:]:
        theirs = statistics.median(row.wall), statistics.median(row.processor)
        print(f"of {row.name}: {ours[0] / theirs[0]:.3f} of the time, {ours[1] / theirs[1]:.3f} of the processors'")
    same = sum(ours == theirs for ours, theirs in zip(rows[0].tokens, rows[1].tokens, strict=True))
    print(f"the first token is {first}; {same} of {given.steps} tokens are the same")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="half-billion")
    parser.add_argument("--backend", default="onnxruntime")
    parser.add_argument(
        "--provider", choices=DEVICES, default="CPUExecutionProvider", help="of onnxruntime's own session"
    )
    parser.add_argument("--capacity", type=int, default=1024)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--steps", type=int, default=32)
    trio.run(main, parser.parse_args())
