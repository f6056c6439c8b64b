"""The report of disagreements between places, as Markdown."""

from collections import Counter
from importlib.metadata import version


def report(places, seed, graphs):
    """The report.

    Args:
        places: the names of the places.
        seed: of the graphs.
        graphs: what :class:`GraphsFound` gathers.
        cases: what :class:`CasesFound` gathers.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "onnxruntime", "wgpu"))
    lines = [
        "# Where places disagree",
        "",
        f"{graphs.count} random graphs (seed {seed}); {versions}.",
        "",
        "| | " + " | ".join(places) + " |",
        "|---|" + "---|" * len(places),
    ]
    odd = Counter(name for one in graphs.found for name in one.odd)
    refused = Counter(name for name, _ in graphs.refused)
    for title, counts in (
        ("values of graphs that differ from the most", odd),
        ("graphs refused", refused),
    ):
        lines.append(f"| {title} | " + " | ".join(str(counts[name]) for name in places) + " |")
    return "\n".join([*lines, *_of_graphs(graphs)]) + "\n"


def _of_graphs(graphs):
    if graphs.found:
        yield from ("", f"## Disagreements: {len(graphs.found)}")
    for one in graphs.found:
        yield from ("", f"{one.operator}, {' and '.join(one.odd)} against {' and '.join(one.groups[0])}")
        yield from (f"({', '.join(sorted(one.features))}): {one.text}", "", "```text")
        yield from (repr(one.program).strip("\n"), "```")
    if graphs.refused:
        yield from ("", "## Refused", "")
        yield from (f"- {name}: {text}" for name, text in graphs.refused)
