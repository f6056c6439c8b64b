"""Read and write ``backend_tests.toml``, the list of the tests of ``onnx.backend.test`` that do not simply run.

``python -m spec_tests.onnx_models.backend_list`` writes it from a run on the numpy device. It keeps the reasons in it,
and gives a new failure its refusal for a reason, to be put into words.
"""

import json
import re
import tomllib
from pathlib import Path

import onnx
import trio

import webnn_py
from spec_tests.onnx_models.backend_cases import WAYS, backend_cases, outcome

LISTED = Path(__file__).parent / "backend_tests.toml"
HEADER = """\
# The outcome of each test of onnx.backend.test, in the version of onnx below, other than "run": which need their inputs
# given in another way (backend_cases.py describes the ways), and why the others fail. All other tests run and pass.
# "name*" means all tests whose names begin with "name".
# Written by: python -m spec_tests.onnx_models.backend_list
"""


def listed():
    """Return the listed version of onnx, and by test the kind of its outcome with the reason of a failure."""
    content = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    entries = [(pattern, (way, "")) for way, patterns in content["passes"].items() for pattern in patterns]
    entries += [(pattern, (item["outcome"], item["reason"])) for item in content["fails"] for pattern in item["tests"]]
    outcomes = dict.fromkeys(backend_cases(), (WAYS[0], ""))
    for pattern, of_pattern in entries:
        prefix = pattern.removesuffix("*")
        named = [name for name in outcomes if name == pattern or (prefix != pattern and name.startswith(prefix))]
        assert named, f"no test has the name {pattern}"
        for name in named:
            assert outcomes[name] == (WAYS[0], ""), f"{name} is listed twice"
            outcomes[name] = of_pattern
    return content["onnx"], outcomes


def written(outcomes):
    """Return the list as text; outcomes are pairs of a kind and a reason, by name."""
    lines = [HEADER + f"onnx = {json.dumps(onnx.__version__)}", "", "[passes]"]
    for way in WAYS[1:]:
        lines += [f"{json.dumps(way)} = [", *_patterns(outcomes, (way, "")), "]"]
    for kind, reason in sorted({value for value in outcomes.values() if value[0] not in WAYS}):
        lines += ["", "[[fails]]", f"outcome = {json.dumps(kind)}", f"reason = {json.dumps(reason)}", "tests = ["]
        lines += [*_patterns(outcomes, (kind, reason)), "]"]
    return "\n".join(lines) + "\n"


def _patterns(outcomes, wanted):
    """Yield a line for each test with an outcome, or for all tests with one prefix where all have the outcome."""
    others = [name for name, value in outcomes.items() if value != wanted]
    names = sorted(name for name, value in outcomes.items() if value == wanted)
    while names:
        ends = [end.end() for end in re.finditer("(?<!^test)_|/|$", names[0])]
        own = (names[0][:end] for end in ends if not any(name.startswith(names[0][:end]) for name in others))
        prefix = next(own, None)
        covered = [name for name in names if prefix is not None and name.startswith(prefix)]
        yield f"    {json.dumps(f'{prefix}*' if len(covered) > 1 else names[0])},"
        names = [name for name in names[1:] if name not in covered]


async def _main():
    _, known = listed()
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        outcomes = {}
        for name, case in backend_cases().items():
            result = await outcome(context, case)
            kind, reason = known[name]
            outcomes[name] = (result.kind, "" if not result.wrong else reason if kind == result.kind else result.wrong)
    LISTED.write_text(written(outcomes), encoding="utf-8")


if __name__ == "__main__":
    trio.run(_main)
