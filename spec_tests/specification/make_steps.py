"""Write ``steps.json``: ``python -m spec_tests.specification.make_steps PATH/TO/index.bs REVISION``.

The file has no text of the specification but the first words of each step, since code and pages are found by them.
A step keeps its identifier when others are added, removed or changed: identifiers are the numbers that steps had when
they were first recorded, and a step that is added behind 5.2 is 5.2a, as in laws.
"""

import json
import sys
from difflib import SequenceMatcher
from pathlib import Path

from spec_tests.specification import steps
from spec_tests.specification.forms import form_of, refuses
from spec_tests.specification.text import read

BUILDS = ("api-mlgraphbuilder-constructor", "api-mlgraphbuilder-input", "api-mlgraphbuilder-build")


def is_operator(algorithm):
    """Return whether an algorithm is of the sections of operators."""
    anchor = algorithm.anchor
    return anchor.startswith("api-mlgraphbuilder-") and not anchor.startswith((*BUILDS, "api-mlgraphbuilder-constant"))


def identified(before, algorithm):
    """Return the identifier of each step of an algorithm.

    Args:
        before: the recorded steps of the algorithm; none if it is new.
        algorithm: as it is now.
    """
    if not before:
        return [step.number for step in algorithm.steps]
    old = [step.digest for step in before]
    new = [step.digest for step in algorithm.steps]
    identifiers = {}
    for kind, first, end, begin, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and end - first == stop - begin):
            identifiers.update(zip(range(begin, stop), (step.identifier for step in before[first:end]), strict=True))
    taken = {step.identifier for step in before}
    last = "0"
    for index in range(len(new)):
        if index not in identifiers:
            letters = (f"{last}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
            identifiers[index] = next(name for name in letters if name not in taken)
            taken.add(identifiers[index])
        last = identifiers[index]
    return [identifiers[index] for index in range(len(new))]


def recorded(source, before=None):
    """Return what is recorded of each algorithm of a source, with the identifiers of what was recorded before."""
    before = before or {}
    found = []
    for algorithm in read(source):
        old = before[algorithm.name].steps if algorithm.name in before else []
        lines = []
        for identifier, step in zip(identified(old, algorithm), algorithm.steps, strict=True):
            form = form_of(step.text) if is_operator(algorithm) else ""
            lines.append([identifier, step.number, step.digest, step.summary, form, refuses(step.text)])
        found.append({"name": algorithm.name, "anchor": algorithm.anchor, "digest": algorithm.digest, "steps": lines})
    return found


def main(path, revision):
    """Write the file."""
    before = steps.ALGORITHMS if steps.FILE.exists() else {}
    algorithms = recorded(Path(path).read_text(encoding="utf-8"), before)
    parts = []
    for algorithm in algorithms:
        head = json.dumps({key: value for key, value in algorithm.items() if key != "steps"}, ensure_ascii=False)
        lines = ",\n".join(f"  {json.dumps(step, ensure_ascii=False)}" for step in algorithm["steps"])
        parts.append(f'{head[:-1]}, "steps": [\n{lines}\n]}}')
    source = json.dumps(f"webmachinelearning/webnn {revision}")
    steps.FILE.write_text(f'{{"source": {source}, "algorithms": [\n' + ",\n".join(parts) + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
