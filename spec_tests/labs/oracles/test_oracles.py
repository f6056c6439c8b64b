"""The third oracle: disagreements are found, minimized and told."""

import attrs
import numpy as np
import pytest

from spec_tests.labs.oracles.__main__ import GraphsFound, compute_graphs
from spec_tests.labs.oracles.aims import AIMS, AimedDrawer
from spec_tests.labs.oracles.graphs import disagreements, graph, groups_of, smallest
from spec_tests.labs.oracles.hostile import HostileSource
from spec_tests.labs.oracles.places import LEVELS, PLACES, Places, opened
from spec_tests.labs.oracles.report import report
from spec_tests.support.backends import BACKENDS
from spec_tests.support.random_graphs.bounds import Known, Value
from spec_tests.support.random_graphs.program import Program
from webnn_py.core.operators.registry import OPERATORS

SEED = 3
FEW = 3
FAST = ("numpy", *LEVELS)


@attrs.frozen
class Wrong(Places):
    """Places of which "exported" adds 1 to what a method computes, where it is an output."""

    method: str

    async def results(self, program, names=None):
        found = await super().results(program, names)
        makers = {value.name: call for call in program.calls for value in call.results}
        for number, value in enumerate(program.outputs):
            if "exported" in found and makers[value.name].method == self.method:
                for outputs in found["exported"]:
                    outputs[number] = outputs[number] + np.ones((), outputs[number].dtype)
        return found


def long_graph():
    """A graph that has all that it computes as outputs, and a call that is not the first."""
    return next(program for number in range(0, 100, 2) if len((program := graph(number, SEED)).calls) > FEW)


async def test_few_random_graphs_give_the_same_everywhere():
    gathered = await compute_graphs(PLACES, 0, FEW, SEED)
    assert gathered.count == FEW
    assert [(one.operator, one.odd, one.text) for one in gathered.found] == []
    assert gathered.refused == []


@pytest.mark.sampled(len(AIMS))
@pytest.mark.parametrize("aim", AIMS)
async def test_an_aimed_graph_gives_the_same_on_every_device(aim):
    gathered = await compute_graphs(BACKENDS, 0, 1, SEED, aim)
    assert [(one.operator, one.odd, one.text) for one in gathered.found] == []
    assert gathered.refused == []


async def test_special_elements_come_back_from_every_device_as_they_were():
    value = Value("x0", "float16", (40,), Known(-4, 4, 2.0**-3))
    source = HostileSource(value, is_input=True, seed=3, kinds=("nan", "inf"))
    drawer = AimedDrawer(None, ("float16",), 40, rng=np.random.default_rng(0), sources=[source], values=[value])
    negative = drawer.call("neg", value, known=value.known)
    async with opened(BACKENDS) as places:
        results = await places.results(Program.of(drawer.sources, drawer.calls, [negative]))
    given = source.data(1)
    assert np.isnan(given).any()
    assert np.isinf(given).any()
    assert np.isfinite(given).any()
    for name, rounds in results.items():
        np.testing.assert_array_equal(rounds[1][0], -given, name)


async def test_a_place_that_is_wrong_is_told_with_the_call_alone():
    program = long_graph()
    async with opened(FAST) as places:
        there = Wrong(places.contexts, places.names, program.calls[-1].method)
        (found, *_) = disagreements(program, await there.results(program))
        assert found.odd == ("exported",)
        assert found.operator == OPERATORS[there.method].spec_name
        least = await smallest(there, found)
    assert [call.method for call in least.program.calls] == [there.method]
    assert "on exported" in least.text
    shown = repr(least.program)
    assert f"builder.{there.method}(" in shown
    assert len(shown) < len(repr(program))


async def test_what_follows_from_a_wrong_value_is_not_told():
    program = long_graph()
    read = {operand.name for call in program.calls for operand in call.operands}
    at, call = next((at, call) for at, call in enumerate(program.calls) if read & {one.name for one in call.results})
    number = program.outputs.index(call.results[0])
    after = next(one for one in program.calls[at:] if call.results[0] in one.operands)
    follows = program.outputs.index(after.results[0])
    async with opened(("numpy", "unoptimized")) as places:
        results = await places.results(program)
    for rounds in results["unoptimized"]:
        for place in (number, follows):
            rounds[place] = rounds[place] + np.ones((), rounds[place].dtype)
    (found,) = disagreements(program, results)
    assert found.operator == OPERATORS[call.method].spec_name


def test_places_are_grouped_by_what_they_agree_on():
    value = Value("v0", "float32", (2,), Known(-8, 8, 0, 1e-3))
    near, far, broken = np.float32([1, 2.0005]), np.float32([1, 2.01]), np.float32([1, np.nan])
    results = {"numpy": [far], "wgpu": [near], "onnxruntime": [np.float32([1, 2])], "exported": [broken]}
    assert groups_of(value, results) == (("wgpu", "onnxruntime"), ("numpy",), ("exported",))
    assert groups_of(value, {"numpy": [broken], "wgpu": [broken.copy()]}) == (("numpy", "wgpu"),)


async def test_the_report_counts_and_shows_what_was_found():
    program = long_graph()
    async with opened(FAST) as places:
        there = Wrong(places.contexts, places.names, program.calls[-1].method)
        (found, *_) = disagreements(program, await there.results(program))
    text = report(FAST, SEED, GraphsFound(2, [found], []))
    assert "| values of graphs that differ from the most | 0 | 1 | 0 |" in text
    assert f"## Disagreements: 1\n\n{found.operator}, exported against" in text
