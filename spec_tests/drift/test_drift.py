"""The drift command finds each kind of change, names the code that it concerns, and has an exit status for a job."""

import json

from spec_tests.drift import __main__ as command
from spec_tests.drift import comparison, recorded
from spec_tests.specification import steps

IDL = """
[SecureContext, Exposed=(Window, Worker)]
interface MLContext {
  // A comment; with a semicolon.
  Promise<ArrayBuffer> readTensor(MLTensor tensor);
  Promise<undefined> readTensor(MLTensor tensor, AllowSharedBufferSource outputData);
  readonly attribute boolean accelerated;
};
dictionary MLOptions : MLOperatorOptions {
  required sequence<[EnforceRange] unsigned long> shape;
  MLNumber value = 0;
};
enum MLMode { "edge", "constant" };
typedef (bigint or unrestricted double) MLNumber;
"""


def test_members_of_the_idl_are_found_by_name():
    assert list(recorded.idl_members(IDL)) == [
        "MLContext.accelerated",
        "MLContext.readTensor",
        "MLMode.constant",
        "MLMode.edge",
        "MLOptions.shape",
        "MLOptions.value",
        "typedef MLNumber",
    ]


def of_steps(name, change):
    """Return the changes that are found when an algorithm's recorded steps are changed."""
    now = [
        {
            "name": algorithm.name,
            "steps": [[s.identifier, s.number, s.digest, s.summary, s.form, s.refuses] for s in algorithm.steps],
        }
        for algorithm in steps.ALGORITHMS.values()
    ]
    (algorithm,) = [one for one in now if one["name"] == name]
    change(now, algorithm)
    return list(comparison._steps(now))


def test_a_changed_step_is_named_with_its_code():
    (found,) = of_steps("MLContext.dispatch", lambda _, algorithm: algorithm["steps"][3].__setitem__(2, "other"))
    assert found.startswith("step changed: MLContext.dispatch 4: If allTensors contains any duplicate")
    assert "core/api/dispatch_arguments.py:" in found
    assert found.endswith(" storages_of)")


def test_new_steps_and_those_gone_are_found():
    def change(_, algorithm):
        del algorithm["steps"][1]
        algorithm["steps"].insert(1, ["1a", "2", "digest", "Let a be 1.", "", False])

    assert [line.partition(" (")[0] for line in of_steps("MLGraph.destroy", change)] == [
        "step gone: MLGraph.destroy 2: Set this.[[isDestroyed]] to true.",
        "step new: MLGraph.destroy 1a: Let a be 1.",
    ]


def test_algorithms_new_and_gone_are_found():
    def rename(_, algorithm):
        algorithm["name"] = "MLGraph.end"

    found = of_steps("MLGraph.destroy", rename)
    assert found == ["algorithm gone: MLGraph.destroy", "algorithm new: MLGraph.end, 3 steps"]


def checkout(tmp_path, **files):
    folder = tmp_path / "wpt" / "webnn"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.https.any.js").write_text(text, encoding="utf-8")
    return tmp_path / "wpt"


def report(tmp_path, **files):
    """Write a report of files with sub-tests that pass, and return its path."""
    path = tmp_path / "report.json"
    listed = [
        {"id": name, "subtests": [{"name": one, "status": "PASS"} for one in subtests]}
        for name, subtests in files.items()
    ]
    path.write_text(json.dumps({"files": listed}), encoding="utf-8")
    return path


def test_test_files_and_sub_tests_are_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "FILE", tmp_path / "recorded.json")
    first = checkout(tmp_path, add="add", sub="sub")
    recorded.record_wpt(first, report(tmp_path, add=["one", "two"], sub=["three"]), "abc")
    assert comparison.of_wpt(first, report(tmp_path, add=["two", "one"], sub=["three"])) == []
    (first / "webnn" / "sub.https.any.js").unlink()
    second = checkout(tmp_path, add="changed", mul="mul")
    assert comparison.of_wpt(second, report(tmp_path, add=["one"], mul=["four"])) == [
        "test file changed: add.https.any.js",
        "test file new: mul.https.any.js",
        "test file gone: sub.https.any.js",
        "sub-tests changed: add: 2 → 1, or other names or statuses",
        "sub-tests of new: mul",
        "sub-tests of gone: sub",
    ]


def test_a_changed_text_has_the_status_1(tmp_path, capsys):
    source = (
        "<details open algorithm>\nThe <dfn method for=MLGraph>destroy()</dfn> steps are:\n    1. Stop.\n</details>\n"
    )
    (tmp_path / "index.bs").write_text(f"{source}<script type=idl>\n{IDL}</script>\n", encoding="utf-8")
    assert command.main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "algorithm gone: MLContext.dispatch\n" in printed
    assert "step changed: MLGraph.destroy" in printed or "step gone: MLGraph.destroy" in printed
    assert "operator gone: conv2d\n" in printed
    assert "limits gone: conv2d input\n" in printed


def test_what_is_recorded_is_of_the_same_commit_as_the_steps():
    assert recorded.read()["text"] == steps.SOURCE
