"""The examples of graph building print what docs/building_graphs.md says that they print, on each device."""

import importlib
import json
import re
from pathlib import Path

import own_gpu_pass
import pytest
import trio

from spec_tests.support.backends import BACKENDS, ON_GPU
from spec_tests.support.trace_format import check_document, of_phase

ROOT = Path(own_gpu_pass.__file__).parents[1]
PAGE = (ROOT / "docs" / "building_graphs.md").read_text(encoding="utf-8")
PRINTED = dict(
    re.findall(r"```sh\npython examples/(\w+)\.py\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
)  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_it_prints(name, backend, capsys):
    importlib.import_module(name).main([f"--backend={backend}"])
    assert capsys.readouterr().out == PRINTED[name]


def test_the_page_has_every_example_that_says_its_idea_in_three_lines():
    assert len(PRINTED) == 6
    for name in PRINTED:
        first, blank, *rest = importlib.import_module(name).__doc__.splitlines()
        assert (blank, len(rest)) == ("", 2), f"{name}: {first}"


def test_destroy_in_flight_saves_its_trace(tmp_path):
    path = tmp_path / "trace.json"
    importlib.import_module("destroy_in_flight").main(["--backend=numpy", f"--trace={path}"])
    events = check_document(json.loads(path.read_text(encoding="utf-8")))
    (rejection,) = of_phase(events, "i", "rejection")
    assert rejection["args"]["call"] == "destroy()"
    places = [event["args"]["source"] for event in of_phase(events, "X", "call")]
    assert all("destroy_in_flight.py:" in place for place in places), places


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", [ON_GPU])
def test_a_shader_of_ones_own_draws_between_two_graphs(backend, capsys):
    trio.run(own_gpu_pass.main)
    printed = capsys.readouterr()
    rows = printed.out.splitlines()
    assert len(rows) == own_gpu_pass.SIZE
    middle = own_gpu_pass.SIZE // 2
    shades = " .:-=+*#%@"
    radius = own_gpu_pass.SIZE // 3
    on, within = (shades.index(rows[middle - place][2 * middle]) for place in (radius, 0))
    assert on > within + 2, "the circle, and what is within"
    assert printed.err.endswith("host copies: 2\n")
