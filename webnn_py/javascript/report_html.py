"""The report as one self-contained page: totals, the matrix of operators and data types, what failed, every file."""

from collections.abc import Iterable
from html import escape

from webnn_py.javascript.matrix import Cell, columns, failures, matrix
from webnn_py.javascript.results import HARNESS
from webnn_py.javascript.summary import Run

_STYLE = """
:root { color-scheme: light dark; --good: #1a7f37; --known: #9a6700; --bad: #cf222e; --line: #8884; --soft: #8882; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
.totals { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; }
.totals div { border: 1px solid var(--line); border-radius: .5rem; padding: .4rem .9rem; }
.totals b { display: block; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: .15rem .5rem; text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: Canvas; }
.matrix td { text-align: right; white-space: nowrap; } .matrix td.none { background: none; }
.good { background: color-mix(in srgb, var(--good) 22%, transparent); }
.known { background: color-mix(in srgb, var(--known) 28%, transparent); }
.bad { background: color-mix(in srgb, var(--bad) 35%, transparent); font-weight: 600; }
.wide td { overflow-wrap: anywhere; } .file { min-width: 14rem; } code { font-size: .9em; }
.key span { padding: .1rem .5rem; margin-right: .5rem; }
""".strip()


def as_html(run: Run) -> str:
    """The page."""
    totals = run.totals()
    title = f"web-platform-tests: {totals['passed']:,} of {totals['subtests']:,} sub-tests passed"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>\n{_STYLE}\n</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            _facts(run),
            _totals(run),
            "<h2>Operators and data types</h2>",
            _matrix(run),
            _failures(run),
            "<h2>Files</h2>",
            _files(run),
            "</body></html>",
            "",
        ]
    )


def _facts(run: Run) -> str:
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in run.facts.items()) + "</dl>"


def _totals(run: Run) -> str:
    totals = run.totals()
    shown = [
        ("passed", totals["passed"], "good"),
        ("expected failures", totals["expected_failures"], "known" if totals["expected_failures"] else ""),
        ("unexpected failures", totals["unexpected_failures"], "bad" if totals["unexpected_failures"] else ""),
        ("unexpected passes", totals["unexpected_passes"], "bad" if totals["unexpected_passes"] else ""),
        ("files", totals["files"], ""),
        ("seconds", totals["seconds"], ""),
    ]
    boxes = "".join(f'<div class="{style}"><b>{value:,}</b>{name}</div>' for name, value, style in shown)
    return f'<div class="totals">{boxes}</div>'


def _class(cell: Cell) -> str:
    if any(verdict.startswith("unexpected") for verdict in cell):
        return "bad"
    return "known" if cell["expected failure"] else "good"


def _cell(cell: Cell) -> str:
    total = cell.total()
    if not total:
        return '<td class="none"></td>'
    passed = cell["pass"] + cell["unexpected pass"]
    return f'<td class="{_class(cell)}">{passed}{"" if passed == total else f" of {total}"}</td>'


def _matrix(run: Run) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ["operator", *columns(), "all"])
    rows = []
    for operator, cells in matrix(run).items():
        every = sum(cells.values(), start=type(next(iter(cells.values()), _EMPTY))())
        row = "".join(_cell(cells.get(column, _EMPTY)) for column in columns())
        rows.append(f"<tr><th>{escape(operator)}</th>{row}{_cell(every)}</tr>")
    key = (
        '<p class="key"><span class="good">all passed</span><span class="known">some fail as expected</span>'
        '<span class="bad">something unexpected</span> Empty: no sub-test says that it is about both.</p>'
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'{key}<div class="scroll"><table class="matrix">{table}</table></div>'


_EMPTY: Cell = Cell()


def _table(head: Iterable[str], rows: Iterable[str]) -> str:
    headings = "".join(f"<th>{escape(name)}</th>" for name in head)
    return (
        f'<div class="scroll"><table class="wide"><thead><tr>{headings}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _path(path: str) -> str:
    """A path that breaks at its slashes."""
    return f'<td class="file">{escape(path).replace("/", "/<wbr>")}</td>'


def _failures(run: Run) -> str:
    rows = [
        f'<tr class="{"known" if one.verdict == "expected failure" else "bad"}"><td>{escape(one.verdict)}</td>'
        f"{_path(one.file)}<td>{escape(one.name)}</td><td>{escape(one.message or one.status)}</td>"
        f"<td>{escape(one.reason or '')}</td></tr>"
        for one in failures(run)
    ]
    if not rows:
        return "<h2>What did not pass</h2><p>Everything passed.</p>"
    table = _table(["verdict", "file", "sub-test", "message", "reason"], rows)
    return f"<h2>What did not pass</h2>{table}"


def _files(run: Run) -> str:
    rows = []
    for result in run.files:
        judged = [one for one in run.judged[result.id] if one.name != HARNESS]
        passed = sum(one.verdict in {"pass", "unexpected pass"} for one in judged)
        bad = any(one.verdict.startswith("unexpected") for one in run.judged[result.id])
        style = "bad" if bad else "good" if passed == len(judged) else "known"
        rows.append(
            f'<tr class="{style}">{_path(result.id)}<td>{escape(result.harness)}</td>'
            f"<td>{passed}</td><td>{len(judged)}</td><td>{result.seconds:.2f}</td></tr>"
        )
    return _table(["file", "harness", "passed", "sub-tests", "seconds"], rows)
