"""The report of disagreements between places, as Markdown."""

from collections import Counter, defaultdict
from importlib.metadata import version


def report(places, seed, graphs, cases):
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
        f"{graphs.count} random graphs (seed {seed}) and {cases.count} operator cases; {versions}.",
        "",
        "| | " + " | ".join(places) + " |",
        "|---|" + "---|" * len(places),
    ]
    odd = Counter(name for one in graphs.found for name in one.odd)
    refused = Counter(name for name, _ in graphs.refused)
    wrong = Counter(one.place for one in cases.found)
    unknown = Counter(one.place for one in cases.found if one.reason is None)
    for title, counts in (
        ("values of graphs that differ from the most", odd),
        ("graphs refused", refused),
        ("cases other than their oracle", wrong),
        ("of them not listed", unknown),
    ):
        lines.append(f"| {title} | " + " | ".join(str(counts[name]) for name in places) + " |")
    return "\n".join([*lines, *_of_graphs(graphs), *_of_cases(cases)]) + "\n"


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


def _of_cases(cases):
    by_reason = defaultdict(list)
    for one in cases.found:
        by_reason[one.place, one.operator, one.reason].append(one)
    if by_reason:
        yield from (
            "",
            "## Operator cases",
            "",
            "| place | operator | cases | one of them | reason |",
            "|---|---|---|---|---|",
        )
    for (place, operator, reason), found in sorted(
        by_reason.items(), key=lambda item: (item[0][2] is not None, item[0][:2])
    ):
        text = f"{found[0].name}: {found[0].text}".replace("|", "\\|")
        yield f"| {place} | {operator} | {len(found)} | {text} | {reason or '**not listed**'} |"
