"""Real models on the onnxruntime device, or on numpy, beside onnxruntime itself; one thread, from host to host; builds.

``PYTHONPATH=examples python -m spec_tests.benchmarks.engine_models``, with further models as ``PATH=1x3x224x224``, the
shape of each input. With ``--backend numpy``, before which ``OPENBLAS_NUM_THREADS=1`` keeps numpy on one thread. Both
are timed in turn, by processor time, so that other programs count as little as they can; medians.
onnxruntime itself is a session of the model as it is shipped, with its optimizations as they are by default, and with
bound inputs and outputs; its build is the session's. Before each build the model is drawn anew, garbage collected and
what the build before has made released, and they take turns in being first: neither finds more in the caches than the
other. Of models with state, what one run leaves is read by the next where it lies, on both sides, as such models are
used; with ``--state-by-host`` it goes to the host and back.
"""

import argparse
import gc
import statistics
from pathlib import Path
from time import process_time

import numpy as np
import real_models
import trio
import trio.testing

from spec_tests.benchmarks.engine import MAGIKA, NO_STATE, contender, itself
from spec_tests.benchmarks.measure import as_text
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.onnx_models import OnnxModel
from webnn_py.script.builder import drawing_of

SECONDS = 2
LEAST, BUILDS = 10, 9

MODELS = {
    "voice_activity": {"input": [1, 576], "state": [2, 1, 128]},
    "text_direction": [1, 3, 48, 192],
    "face_detection": [1, 3, 640, 640],
    "text_recognition": [1, 3, 48, 320],
    "text_detection": [1, 3, 320, 640],
    "speech_encoder": [1, 80000],
}
"""Those of the examples, with the shapes of their inputs."""

STATES = {"voice_activity": {"stateN": "state"}}
"""The outputs of a model that the next run reads, and as which input: they stay where they are computed."""


async def drawn(context, path, shapes):
    """A builder and the outputs of a model."""
    model, builder = OnnxModel.load(path), MLGraphBuilder(context)
    given = shapes if isinstance(shapes, dict) else dict.fromkeys(model.inputs, shapes)
    return builder, model.convert(builder, input_shapes=given)


def feeds_of(outputs):
    rng = np.random.default_rng(3)
    inputs = [(item.name, item.descriptor) for item in drawing_of("engine", outputs).inputs.values()]
    return {
        name: (
            rng.normal(size=descriptor.shape)
            if descriptor.data_type.startswith("float")
            else rng.integers(0, 100, descriptor.shape)
        ).astype(descriptor.data_type)
        for name, descriptor in inputs
    }


async def taken(call):
    """Seconds of the processor."""
    began = process_time()
    result = call()
    if result is not None:
        await result
    return process_time() - began


async def times(context, path, shapes, state):
    """Of ours and of onnxruntime: the medians of the runs, and of the builds."""
    calls, builds = [None, None], [[], []]
    for turn in range(BUILDS):
        for side in (0, 1) if turn % 2 else (1, 0):
            calls[side] = None
            builder, outputs = await drawn(context, path, shapes)
            feeds = feeds_of(outputs)
            gc.collect()
            await trio.testing.wait_all_tasks_blocked()  # what is released is gone
            if side == 0:
                made = await contender(context, builder, outputs, feeds, state, clock=process_time)
            else:
                made = itself(str(path), feeds, 1, state, clock=process_time)
            calls[side], seconds = made
            builds[side].append(seconds)
    runs, began = [[], []], process_time()
    while process_time() - began < SECONDS or len(runs[0]) < LEAST:
        for samples, call in zip(runs, calls, strict=True):
            samples.append(await taken(call))
    return ([statistics.median(samples) for samples in kind] for kind in (runs, builds))


async def measure(backend, models, states):
    options = {"threads": 1} if backend == "onnxruntime" else {}
    print("| | webnn_py | onnxruntime | | build | session | |\n|---|---|---|---|---|---|---|")
    ratios = []
    async with open_ml() as ml:
        for name, path, shapes in models:
            context = await ml.create_context(backend=backend, **options)
            (ours, theirs), (build, session) = await times(context, path, shapes, states.get(name, NO_STATE))
            context.destroy()
            ratios.append((ours / theirs, build / session))
            run, made = ratios[-1]
            cells = [name, as_text(ours), as_text(theirs), f"{run:.2f} ×"]
            print(
                "| " + " | ".join([*cells, as_text(build), as_text(session), f"{made:.2f} ×"]) + " |",
                flush=True,
            )
    run, made = np.exp(np.log(ratios).mean(0))
    print(f"| geometric mean | | | {run:.2f} × | | | {made:.2f} × |")


def main():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.benchmarks.engine_models", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="PATH=SHAPE")
    parser.add_argument("--backend", choices=["onnxruntime", "numpy"], default="onnxruntime")
    parser.add_argument("--state-by-host", action="store_true", help="states go to the host and back at each run")
    given = parser.parse_args()
    further = [argument.rpartition("=") for argument in given.models]
    models = [
        ("magika", MAGIKA, [1, 2048]),
        *((name, real_models.get(name), shapes) for name, shapes in MODELS.items()),
        *((Path(path).stem, path, [int(size) for size in shape.split("x")]) for path, _, shape in further),
    ]
    trio.run(measure, given.backend, models, {} if given.state_by_host else STATES)


if __name__ == "__main__":
    main()
