"""``webnn-py info --browser``: what of a model would fail in a browser."""

import numpy as np
import pytest

from spec_tests.support.onnx_programs import program

CHROMIUM = "chromium-153-litert"


@pytest.fixture
def padded(model):
    """A model that pads the edge twice."""
    kind = ("float32", [2])
    nodes = [("Pad", [name, "pads"], [result], {"mode": "edge"}) for name, result in (("x", "a"), ("a", "y"))]
    return model(program(nodes, {"x": kind}, {"y": ("float32", [6])}, {"pads": np.array([1, 1], np.int64)}))


def test_info_tells_what_would_fail(command, padded):
    ended = command("info", padded, "--backend", "numpy", "--browser", CHROMIUM).succeeded()
    first, heading, row = ended.out.splitlines()[-3:]
    assert first == "in browsers"
    assert heading.split()[:3] == ["browser", "profile", "what"]
    assert row.split()[:6] == [CHROMIUM, "pad", "2", "at", "build(),", "NotSupportedError"]
    assert "mode must not be edge" in row


def test_info_as_json_tells_what_would_fail(command, padded):
    told = command("info", padded, "--backend", "numpy", "--browser", CHROMIUM, "--json").report()
    assert told["runs"]
    assert not told["browsers"][CHROMIUM]["runs"]
    (failing,) = told["browsers"][CHROMIUM]["failing"]
    assert (failing["what"], failing["times"], failing["when"]) == ("pad", 2, "build")
    assert len(failing["labels"]) <= 2


def test_without_the_option_there_is_nothing_about_browsers(command, padded):
    assert "browsers" not in command("info", padded, "--backend", "numpy", "--json").report()


def test_an_unknown_browser_is_refused(command, padded):
    command("info", padded, "--browser", "netscape-4").assert_refused("netscape-4")
