"""Write ``docs/steps``, "The text, step by step": ``python -m spec_tests.specification.make_pages``.

The site's build runs it; git ignores what it writes.
"""

from collections import defaultdict
from pathlib import Path

from spec_tests.specification import references, steps
from webnn_py.core.operators.registry import CATEGORIES
from webnn_py.operator_documentation import SPECIFICATION

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
            here = f"*{reasons[key]}*"
        else:
            found = {f"`{place.function}` in {place.path}": None for place in references.places(algorithm, step)}
            here = "<br>".join(found)
        yield f"| {step.identifier}{now} | {words} | {here} |"


def section(algorithm, reasons):
    """Return what a page has of an algorithm."""
    return "\n".join(
        [
            f"## `{algorithm.name}`",
            "",
            f"[In the text]({SPECIFICATION}#{algorithm.anchor})",
            "",
            "| step | begins | here |",
            "|---|---|---|",
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
with the function that does it here. {len(reasons)} steps need no code; the reason is in
italics.

In the code a step is found by a comment, for example `# spec: MLContext.dispatch 3-4`, of the statement below it: a
search for the algorithm's name finds its steps (`MLGraphBuilder.` is left out). A comment also covers the steps
below its own. `# spec: * operand` is a step that all operators have. The shape rule of an operator's algorithm is the
body of its declaration in `webnn_py/core/operators`.

Steps are numbered as when they were first recorded; a step that came later has a letter. The text itself is W3C's:
each table has the first words only.

| page | algorithms | steps |
|---|---|---|
{newline.join(table)}

`python -m spec_tests.drift CHECKOUT` says what a newer text has changed ([drift.md](../drift.md)).
"""


def write():
    """Write the pages that are not there yet as they should be."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
