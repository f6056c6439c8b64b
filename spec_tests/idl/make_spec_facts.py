"""Read the specification's source and write the facts that the declarations are compared with.

``python spec_tests/idl/make_spec_facts.py PATH/TO/index.bs REVISION PATH/TO/webidl2.js`` rewrites two files:
``webnn_py/javascript/specification/api.json``, which is what the IDL says, and ``spec_facts.json`` beside this file,
the limits of every operator, which stand in tables of the text. webidl2.js is ``dist/webidl2.js`` of the npm package
webidl2, or ``resources/webidl2/lib/webidl2.js`` of web-platform-tests.
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

from webnn_py.javascript import descriptions

FACTS = Path(__file__).with_name("spec_facts.json")
API = Path(descriptions.__file__).parent / "specification" / "api.json"
COLUMNS = ("allowed_types", "required_types", "allowed_ranks", "required_ranks")


class LimitsTables(HTMLParser):
    """Collects the cells of the tables whose id begins with ``tensor-limits-``, by the operators they are for."""

    def __init__(self):
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] | None = None
        self._in_cell = False

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            given = dict(attrs)
            operators = ", ".join(re.findall(r"MLGraphBuilder/(\w+)\(", given.get("link-for") or ""))
            limits = (given.get("id") or "").startswith("tensor-limits-")
            self._rows = self.tables.setdefault(operators, []) if limits else None
        elif self._rows is not None and tag == "tr":
            self._rows.append([])
        elif self._rows is not None and tag == "td":
            self._rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag):
        if tag == "td":
            self._in_cell = False
        elif tag == "table":
            self._rows = None

    def handle_data(self, data):
        if self._in_cell and self._rows:
            self._rows[-1][-1] += data


def clean(cell: str) -> str:
    """A cell of a limits table in words: data types, "any", "same as input", "1 to N"."""
    cell = re.sub(r"\[=/?[^|\]]*\|([^\]]*)=\]", r"\1", cell)
    cell = re.sub(r"\[=/?([^\]]*)=\]", r"\1", cell)
    cell = re.sub(r'\{\{(?:[^{}]*/)?"?([^{}"/]*)"?\}\}', r"\1", cell)
    return re.sub(r"\s+", " ", cell.replace("*", "").replace("'s list/items", "")).strip()


def read_limits(source: str) -> dict[str, list[dict[str, str]]]:
    """The rows of every limits table, by the operators it is for."""
    parser = LimitsTables()
    parser.feed(source)
    limits = {}
    for operators, rows in parser.tables.items():
        cells = [[clean(cell) for cell in row] for row in rows if row]
        limits[operators] = [{"operand": row[0], **dict(zip(COLUMNS, row[1:], strict=True))} for row in cells]
    return limits


def lines_of(description: dict) -> str:
    """The description as JSON, one line for each definition, of interfaces for each member."""
    parts = []
    for kind, definitions in description.items():
        if kind in {"source", "navigator"}:
            parts.append(f"{json.dumps(kind)}: {json.dumps(definitions)}")
            continue
        rows = []
        for name, definition in definitions.items():
            text = json.dumps(definition)
            if kind == "interfaces":
                members = [f"  {json.dumps(one)}" for one in definition["operations"]]
                rest = {key: value for key, value in definition.items() if key != "operations"}
                text = json.dumps(rest)[:-1] + ', "operations": [\n' + ",\n".join(members) + "\n ]}"
            rows.append(f" {json.dumps(name)}: {text}")
        parts.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read_sections(source: str) -> dict[str, dict[str, str]]:
    """Title and anchor of the section that has the IDL of each of the builder's methods."""
    sections = {}
    for title, anchor, text in re.findall(r"^#+ (.*?) #+ \{#([\w-]+)\}$(.*?)(?=^##)", source, re.DOTALL | re.MULTILINE):
        for body in re.findall(r"partial interface MLGraphBuilder \{(.*?)\};", text, re.DOTALL):
            for name in re.findall(r"(?:MLOperand|sequence<MLOperand>)\s+(\w+)\(", body):
                sections[name] = {"title": title, "anchor": anchor}
    return sections


def main(path: str, revision: str, parser: str) -> None:
    source = f"webmachinelearning/webnn {revision}"
    specification = Path(path)
    description = descriptions.from_idl(descriptions.read_idl(specification), Path(parser))
    API.write_text(lines_of({"source": source, **description}), encoding="utf-8")
    text = specification.read_text(encoding="utf-8")
    facts = {"source": source, "limits": read_limits(text), "sections": read_sections(text)}
    FACTS.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
