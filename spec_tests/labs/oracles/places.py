"""The places that compute a random graph or a case: every device, and onnxruntime alone, of the exported model."""

from contextlib import asynccontextmanager

import attrs
import numpy as np
import onnxruntime

from spec_tests.labs.real_models.comparison import session_of
from spec_tests.support.backends import BACKENDS
from spec_tests.support.random_graphs.program import ROUNDS
from webnn_py import MLContext, MLGraphBuilder, open_ml
from webnn_py.devices.onnxruntime import engine
from webnn_py.onnx_models import to_model

LEVELS = {
    "exported": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "unoptimized": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
"""By place: how far onnxruntime optimizes a model; the first is its default."""
PROVIDERS = ("CUDAExecutionProvider", "WebGpuExecutionProvider")
"""The execution providers that are places as well, where onnxruntime has them: the device's own is the CPU's."""

PLACES = (*BACKENDS, *(name for name in PROVIDERS if name in engine.names()), *LEVELS)


def options_of(place):
    """Return the options of a context of a place that is none of the levels."""
    if place in PROVIDERS:
        return {"backend": "onnxruntime", "execution_provider": place}
    return {"backend": place} | ({"threads": 1} if place == "onnxruntime" else {})


@attrs.frozen
class Refused:
    """The error that a place reports instead of results."""

    text: str


@attrs.frozen
class Places:
    """Open places.

    Attributes:
        contexts: by place; numpy's is there always, since drawings need one.
        names: the places.
    """

    contexts: dict[str, MLContext]
    names: tuple[str, ...]

    async def results(self, program, names=None):
        """By place: the outputs of each round, or a :class:`Refused`."""
        found = {}
        for name in names or self.names:
            try:
                if name in LEVELS:
                    found[name] = self._exported(program, LEVELS[name])
                else:
                    found[name] = await program.run(self.contexts[name])
            except Exception as error:  # noqa: BLE001 - whatever a place cannot do is what is to be told
                found[name] = Refused(f"{type(error).__name__}: {error}")
        return found

    def _exported(self, program, level):
        builder = MLGraphBuilder(self.contexts["numpy"])
        session = session_of(to_model(program.draw(builder)).SerializeToString(), level)
        needed = {item.name for item in session.get_inputs()}
        given = [source for source in program.sources if source.is_input and source.value.name in needed]
        names = [f"y{number}" for number in range(len(program.outputs))]
        return [
            session.run(names, {source.value.name: np.asarray(source.data(number)) for source in given})
            for number in range(ROUNDS)
        ]


@asynccontextmanager
async def opened(names=PLACES):
    """Places of these names, open as long as this is."""
    async with open_ml() as ml:
        backends = dict.fromkeys(["numpy", *(name for name in names if name not in LEVELS)])
        contexts = {name: await ml.create_context(**options_of(name)) for name in backends}
        yield Places(contexts, tuple(names))
