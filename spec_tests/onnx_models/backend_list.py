"""The list of what each test of ``onnx.backend.test`` comes to: ``backend_tests.toml``.

``python -m spec_tests.onnx_models.backend_list`` writes it anew from a run on the numpy device. Reasons in it are kept,
and what fails newly has the refusal for a reason, to be put into words.
"""

import json
import tomllib
from pathlib import Path

import onnx
import trio

import webnn_py
from spec_tests.onnx_models.backend_cases import WAYS, backend_cases, outcome

LISTED = Path(__file__).parent / "backend_tests.toml"
HEADER = """\
# What each test of onnx.backend.test comes to, in the version of onnx below: which pass, and how their inputs are given
# (backend_cases.py says what the ways are), and why the others fail. What is not as listed is red.
# Written by: python -m spec_tests.onnx_models.backend_list
"""


def listed():
    """For each test the kind of its outcome, "refused" and "wrong" besides the ways, and the reason where it fails."""
    content = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    passes = [(name, (way, "")) for way in WAYS for name in content["passes"][way]]
    fails = [(name, (entry["outcome"], entry["reason"])) for entry in content["fails"] for name in entry["tests"]]
    known = dict(passes + fails)
    assert len(known) == len(passes) + len(fails), "a test is listed twice"
    return content["onnx"], known


def written(outcomes):
    """The list as text; outcomes are pairs of a kind and a reason, by name."""
    lines = [HEADER + f"onnx = {json.dumps(onnx.__version__)}", "", "[passes]"]
    for way in WAYS:
        lines += [f"{json.dumps(way)} = [", *_names(name for name in outcomes if outcomes[name][0] == way), "]"]
    for kind, reason in sorted({value for value in outcomes.values() if value[0] not in WAYS}):
        lines += ["", "[[fails]]", f"outcome = {json.dumps(kind)}", f"reason = {json.dumps(reason)}", "tests = ["]
        lines += [*_names(name for name in outcomes if outcomes[name] == (kind, reason)), "]"]
    return "\n".join(lines) + "\n"


def _names(names):
    return (f"    {json.dumps(name)}," for name in sorted(names))


async def _main():
    _, known = listed()
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        outcomes = {}
        for name, case in backend_cases().items():
            result = await outcome(context, case)
            kind, reason = known.get(name, ("", ""))
            outcomes[name] = (result.kind, "" if not result.wrong else reason if kind == result.kind else result.wrong)
    LISTED.write_text(written(outcomes), encoding="utf-8")


if __name__ == "__main__":
    trio.run(_main)
