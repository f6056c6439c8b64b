"""Write ``docs/steps``, "The text, step by step": ``python -m spec_tests.specification.make_pages [--check]``.

With ``--check``, write nothing and exit with 1 when a page is not what it should be. Pages name functions, not lines,
so that they change when a step moves and not whenever a line does.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from spec_tests.specification import coverage, references, steps
from webnn_py.operators.documentation import SPECIFICATION
from webnn_py.operators.registry import CATEGORIES

FOLDER = Path(__file__).parents[2] / "docs" / "steps"

GENERAL = {
    "contexts": "Contexts, tensors and graphs",
    "builder": "The graph builder",
    "numbers": "Broadcasting and casting",
}
"""The pages that are of no category of operators, with their titles."""


def page_of(algorithm):
    """Return the name of the page that has an algorithm."""
    declared = references.declaration(algorithm)
    if declared is not None:
        return Path(declared.path).stem
    if algorithm.anchor.startswith("algorithms-"):
        return "numbers"
    if algorithm.anchor.startswith(("api-mlgraphbuilder", "api-mloperand")):
        return "builder"
    return "contexts"


def rows(algorithm, reasons):
    """Yield the rows of an algorithm's table."""
    for step in algorithm.steps:
        key = algorithm.name, step.identifier
        now = "" if step.number == step.identifier else f" (now {step.number})"
        words = step.summary.replace("|", "\\|") + ("" if step.summary.endswith((".", ":")) else " …")
        if key in reasons:
            yield f"| {step.identifier}{now} | {words} | *{reasons[key]}* | |"
            continue
        found = {f"`{place.function}` in {place.path}": None for place in references.places(algorithm, step)}
        yield f"| {step.identifier}{now} | {words} | {'<br>'.join(found)} | {coverage.cell(*key)} |"


def section(algorithm, reasons):
    """Return what a page has of an algorithm."""
    return "\n".join(
        [
            f"## `{algorithm.name}`",
            "",
            f"[In the text]({SPECIFICATION}#{algorithm.anchor})",
            "",
            "| step | begins | here | reached by |",
            "|---|---|---|---|",
            *rows(algorithm, reasons),
            "",
        ]
    )


def pages():
    """Return every page by its file name."""
    reasons = steps.reasons()
    sections = defaultdict(list)
    algorithms = defaultdict(list)
    for algorithm in steps.ALGORITHMS.values():
        sections[page_of(algorithm)].append(section(algorithm, reasons))
        algorithms[page_of(algorithm)].append(algorithm)
    titles = {**GENERAL, **{name: name.capitalize() for name in CATEGORIES}}
    found = {f"{name}.md": f"# {titles[name]}, step by step\n\n" + "\n".join(sections[name]) for name in titles}
    found["overview.md"] = overview(titles, algorithms, reasons)
    return found


def overview(titles, algorithms, reasons):
    """Return the first page."""
    table = [
        f"| [{title}]({name}.md) | {len(algorithms[name])} | {sum(len(one.steps) for one in algorithms[name])} |"
        for name, title in titles.items()
    ]
    count = sum(len(one.steps) for one in steps.ALGORITHMS.values())
    newline = "\n"
    return f"""# The text, step by step

Each step of the specification's algorithms ({steps.SOURCE}: {len(steps.ALGORITHMS)} algorithms, {count:,} steps)
with the function that does it here and the tests that reach it. {len(reasons)} steps need no code; the reason is in
italics.

In the code a step is found by a comment, for example `# spec: MLContext.dispatch 3-4`, of the statement below it: a
search for the algorithm's name finds its steps (`MLGraphBuilder.` is left out). A comment also covers the steps
below its own. `# spec: * operand` is a step that all operators have. The shape rule of an operator's algorithm is the
body of its declaration in `webnn_py/operators`.

Steps are numbered as when they were first recorded; a step that came later has a letter. The text itself is W3C's:
each table has the first words only.

{newline.join(coverage.summary())}
| page | algorithms | steps |
|---|---|---|
{newline.join(table)}

`python -m spec_tests.drift CHECKOUT` says what a newer text has changed ([drift.md](../drift.md)).
"""


def outdated():
    """Return the names of pages that are not what they should be."""
    return [
        name
        for name, text in pages().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != text
    ]


def main(arguments):
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(prog="python -m spec_tests.specification.make_pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a page is outdated")
    options = parser.parse_args(arguments)
    wrong = outdated()
    if options.check:
        if wrong:
            print(f"not what the code says: {', '.join(wrong)}; run python -m spec_tests.specification.make_pages")
        return int(bool(wrong))
    FOLDER.mkdir(exist_ok=True)
    found = pages()
    for name in wrong:
        (FOLDER / name).write_text(found[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
