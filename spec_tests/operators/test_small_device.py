"""The small device of ``spec_tests/small_device``, and that ``docs/adding_a_device.md`` says what it is."""

import re
import textwrap
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import webnn_small_device

from webnn_py.device import registry

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/adding_a_device.md").read_text(encoding="utf-8")
MODULE = Path(webnn_small_device.__file__).read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


def test_every_piece_of_code_is_in_the_module():
    pieces = [text for language, text in BLOCKS if language == "python"]
    assert len(pieces) > 5
    assert not [piece for piece in pieces if piece not in MODULE]


def test_the_entry_point_is_that_of_the_distribution():
    (text,) = (text for language, text in BLOCKS if language == "toml")
    written = tomllib.loads(text)["project"]["entry-points"][registry.GROUP]
    assert written == {entry.name: entry.value for entry in entry_points(group=registry.GROUP)}
    assert registry.find("small") is webnn_small_device.RECORD


def test_the_commands_run_tests_that_are_there():
    (text,) = (text for language, text in BLOCKS if language == "console")
    files = re.findall(r"spec_tests/\S+\.py", text)
    assert len(files) == len(text.splitlines())
    assert all((ROOT / file).is_file() for file in files)


def test_the_paths_in_the_document_are_there():
    paths = re.findall(r"`([\w/]+\.py|webnn_py/\w+|spec_tests/\w+)`", DOCUMENT)
    assert paths
    for path in paths:
        there = (ROOT / path).exists() or (ROOT / "webnn_py" / path).exists()
        assert there, path


def test_the_primitives_are_those_that_it_claims():
    (sentence,) = re.findall(r"The primitives have no decomposition. They are: (.*?)\.\n", DOCUMENT, re.DOTALL)
    listed = re.findall(r"`(\w+)`", sentence)
    assert listed == sorted(webnn_small_device.KERNELS)
    assert f"{len(listed)} operators" in textwrap.fill(DOCUMENT, 10**6)
