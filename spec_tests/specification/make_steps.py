"""Write ``steps.json``: ``python -m spec_tests.specification.make_steps PATH/TO/index.bs REVISION``.

The file has no text of the specification but the first words of each step, since code and pages are found by them.
A step keeps its identifier when others are added, removed or changed: identifiers are the numbers that steps had when
they were first recorded, and steps that are added after 5.2 are 5.2a, 5.2b and so on, as in laws.
"""

import argparse
import json
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from string import ascii_lowercase

from spec_tests.specification import steps
from spec_tests.specification.forms import form_of, refuses
from spec_tests.specification.text import read

LETTERS = [*ascii_lowercase, *map("".join, product(ascii_lowercase, repeat=2))]
"""The suffixes of identifiers of steps that were added after another, in their order."""

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
            names = (last.rstrip(ascii_lowercase) + letters for letters in LETTERS)
            identifiers[index] = next(name for name in names if name not in taken)
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


def write(path, revision):
    """Write the file, with the text of a revision.

    Raises:
        OSError: the text cannot be read.
        ValueError: it has no algorithms, or one of another form.
    """
    algorithms = recorded(path.read_text(encoding="utf-8"), steps.ALGORITHMS)
    if not algorithms:
        raise ValueError(f"{path} has no algorithms")
    parts = []
    for algorithm in algorithms:
        head = json.dumps({key: value for key, value in algorithm.items() if key != "steps"}, ensure_ascii=False)
        lines = ",\n".join(f"  {json.dumps(step, ensure_ascii=False)}" for step in algorithm["steps"])
        parts.append(f'{head[:-1]}, "steps": [\n{lines}\n]}}')
    source = json.dumps(f"webmachinelearning/webnn {revision}")
    steps.FILE.write_text(f'{{"source": {source}, "algorithms": [\n' + ",\n".join(parts) + "\n]}\n", encoding="utf-8")


def main():
    """Write what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m spec_tests.specification.make_steps", description=__doc__)
    parser.add_argument("path", type=Path, metavar="index.bs")
    parser.add_argument("revision", help="for example c515210")
    options = parser.parse_args()
    try:
        write(options.path, options.revision)
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
