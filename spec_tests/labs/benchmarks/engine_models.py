"""Real models on the onnxruntime device, or on numpy, beside onnxruntime itself; one thread, from host to host; builds.

``PYTHONPATH=examples python -m spec_tests.labs.benchmarks.engine_models``, with further models as
``PATH=1x3x224x224``, the shape of each input. With ``--backend numpy``, before which ``OPENBLAS_NUM_THREADS=1`` keeps
numpy on one thread. Both are timed in turn, by processor time, so that other programs count as little as they can;
medians. The last columns are a model's way from its file to the first result: loading, converting, building and the
first run, or session and run. onnxruntime itself is a session of the model as it is shipped, with its optimizations as
they are by default, and with bound inputs and outputs; its build is the session's. Of models with state, what one run
leaves is read by the next where it lies, on both sides, as such models are used; with ``--state-by-host`` it goes to
the host and back.
"""

from functools import partial
from pathlib import Path

import magika
import numpy as np
import real_models
import trio

from spec_tests.labs.benchmarks.engine_times import NO_STATE, Table, times
from spec_tests.labs.benchmarks.measure import parser
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import OnnxModel

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


def drawn(context, model, shapes):
    """Return a builder and the outputs of a model."""
    loaded, builder = OnnxModel.load(model), MLGraphBuilder(context)
    given = shapes if isinstance(shapes, dict) else dict.fromkeys(loaded.inputs, shapes)
    return builder, loaded.convert(builder, input_shapes=given)


def feeds_of(outputs):
    """Return the inputs' contents, here and there."""
    rng = np.random.default_rng(3)
    feeds = {}
    for item in drawing_of("engine", outputs).inputs.values():
        shape, data_type = item.descriptor.shape, item.descriptor.data_type
        numbers = rng.normal(size=shape) if data_type.startswith("float") else rng.integers(0, 100, shape)
        feeds[item.name] = numbers.astype(data_type)
    return feeds, feeds


async def measure(backend, models, states):
    options = {"threads": 1} if backend == "onnxruntime" else {}
    table = Table()
    async with open_ml() as ml:
        for name, model, shapes in models:
            context = await ml.create_context(backend=backend, **options)
            draw = partial(drawn, context, model, shapes)
            table.add(name, *await times(context, model, draw, feeds_of, state=states.get(name, NO_STATE)))
            context.destroy()
    table.end()


def main():
    arguments = parser("engine_models", __doc__)
    arguments.add_argument("models", nargs="*", metavar="PATH=SHAPE")
    arguments.add_argument("--backend", choices=["onnxruntime", "numpy"], default="onnxruntime")
    arguments.add_argument("--state-by-host", action="store_true", help="states go to the host and back at each run")
    given = arguments.parse_args()
    further = [argument.rpartition("=") for argument in given.models]
    models = [
        ("magika", str(Path(magika.__file__).parent / "models/standard_v3_3/model.onnx"), [1, 2048]),
        *((name, str(real_models.get(name)), shapes) for name, shapes in MODELS.items()),
        *((Path(path).stem, path, [int(size) for size in shape.split("x")]) for path, _, shape in further),
    ]
    trio.run(measure, given.backend, models, {} if given.state_by_host else STATES)


if __name__ == "__main__":
    main()
