"""``--newer``: single newer test files over a checkout, and what they take from helpers that this does not have."""

import argparse
import json

import pytest

from spec_tests.support.scripts import FILES, run_file, settings, statuses
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.javascript import checkout, commands
from webnn_py.javascript.compatibility import NONE, WPT_2026
from webnn_py.javascript.wpt_run import REQUIRED_FILE, required_json

TEST = """
'use strict';
promise_test(async () => {
  await getRequiredDataTypesAndRanks();
  const {input} = requiredDataTypesAndRanks.gelu;
  assert_true(checkMinimum({dataType: 'float16', shape: [1, 2]}, input));
  assert_false(checkMinimum({dataType: 'int8', shape: [1]}, input));
  assert_false(checkMinimum({dataType: 'float16', shape: [1, 1, 1, 1, 1, 1]}, input));
}, 'helpers');
promise_test(async (t) => {
  const context = await getContext();
  const tensor = await context.createTensor({dataType: 'float32', shape: [1], readable: true});
  tensor.destroy();
  await promise_rejects_dom(t, 'InvalidStateError', context.readTensor(tensor));
}, 'destroyed');
"""
OWN_HELPER = "const checkMinimum = () => true;\nfunction getContext() { return navigator.ml.createContext(); }\n"


@pytest.fixture
def newer(tmp_path):
    """A folder with one test file, which loads a helper."""
    (tmp_path / "webnn" / "resources").mkdir(parents=True)
    (tmp_path / "webnn" / "new.any.js").write_text(TEST, encoding="utf-8")
    return tmp_path


def options(newer, *files):
    return argparse.Namespace(newer=newer, checkout=FILES, files=list(files), device="cpu")


async def run(newer, **changes):
    (test,) = checkout.find(newer, ["new.any.js"], "cpu")
    return statuses(await run_file(settings(newer=newer, **changes), test))


async def test_newer_tests_find_the_required_data_types_and_the_tests_mode_of_errors(newer):
    assert await run(newer) == {"helpers": "PASS", "destroyed": "PASS"}


async def test_the_text_has_another_error(newer):
    assert await run(newer, compatibility=NONE) == {"helpers": "PASS", "destroyed": "FAIL"}


async def test_a_files_own_helpers_stay(newer):
    (newer / "webnn" / "resources" / "own.js").write_text(OWN_HELPER, encoding="utf-8")
    (newer / "webnn" / "new.any.js").write_text(f"// META: script=resources/own.js\n{TEST}", encoding="utf-8")
    assert await run(newer) == {"helpers": "FAIL", "destroyed": "PASS"}


def test_files_of_both_are_found_and_the_newer_of_two_is_read(newer):
    (newer / "webnn" / "tensors.any.js").write_text("// newer", encoding="utf-8")
    assert {test.path for test in commands._find(options(newer))} == {"webnn/new.any.js", "webnn/tensors.any.js"}
    chosen = commands._find(options(newer, "tensors.any.js", "graphs.any.js"))
    assert sorted(test.path for test in chosen) == ["webnn/graphs.any.js", "webnn/tensors.any.js"]
    both = settings(newer=newer)
    assert both.file("webnn/tensors.any.js").read_text(encoding="utf-8") == "// newer"
    assert both.file("webnn/graphs.any.js") == FILES / "webnn/graphs.any.js"
    with pytest.raises(FileNotFoundError, match=r"nowhere\.any\.js: no test file"):
        commands._find(options(newer, "nowhere.any.js"))


def test_newer_files_are_bound_by_the_newer_text(newer):
    named = argparse.Namespace(newer=newer, idl=None)
    idl, description = commands._api(named, FILES)
    assert idl == ""
    assert "MLContext" in description["interfaces"]
    assert commands._mode("auto", idl) is WPT_2026


def test_every_operator_has_its_required_data_types_and_ranks():
    required = json.loads(required_json())
    assert required["add"]["a"] == {"dataTypes": ["float32", "float16", "int32"], "rankRange": {"min": 0, "max": 5}}
    assert required["gather"]["indices"]["dataTypes"] == ["int32"]
    assert {"output0", "output1", "output2"} <= required["lstm"].keys()
    for name, rows in required.items():
        for row in rows.values():
            assert set(row["dataTypes"]) <= set(DATA_TYPES), name
    assert REQUIRED_FILE.endswith(".json")
