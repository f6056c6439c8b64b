"""Random graphs of all categories, saved and loaded, give what they gave, to the bit."""

import tempfile

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec_tests.pictures.checked_pictures import check_picture
from spec_tests.support.backends import DEVICES
from spec_tests.support.random_graphs.program import Program
from spec_tests.support.random_graphs.programs import CATEGORIES, programs
from webnn_py import open_ml
from webnn_py.saved_graphs import SavedGraphs

DATA_TYPES = ("float32", "float16", "int32", "uint32", "int8", "uint8")
"""The devices' common capabilities."""

EXAMPLES = settings().max_examples // 20
"""For each device: on WebGPU each graph compiles a dozen kernels."""


class Loaded(Program):
    """A program whose graph is built, looked at, saved, destroyed, and loaded."""

    async def build(self, context):
        built = await super().build(context, keep_source=True)
        check_picture(built)
        with tempfile.TemporaryDirectory() as folder:
            saved = SavedGraphs(folder)
            await saved.save("graph", built)
            built.destroy()
            return await saved.load(context, "graph")


async def run(program, backend):
    """The outputs' bytes of the program as it is built, and as it is loaded."""
    async with open_ml() as ml:
        context = await ml.create_context(backend=backend)
        loaded = Loaded(**attrs.asdict(program, recurse=False))
        rounds = [await each.run(context) for each in (program, loaded)]
        await context.drain()
        assert (context.statistics().live_buffers, context.statistics().live_bytes) == (0, 0)
    return [[[array.tobytes() for array in arrays] for arrays in results] for results in rounds]


@pytest.mark.parametrize("backend", DEVICES)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_loaded_graph_gives_what_was_built(backend, data):
    category = data.draw(st.sampled_from(list(CATEGORIES)), label="category")
    program = data.draw(programs(category, lambda: DATA_TYPES), label="program")
    built, loaded = trio.run(run, program, backend)
    assert loaded == built
