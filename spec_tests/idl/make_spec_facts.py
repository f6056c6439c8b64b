"""Read the specification's source and write the facts that the declarations are held against.

``python spec_tests/idl/make_spec_facts.py PATH/TO/index.bs REVISION`` rewrites ``spec_facts.json`` beside this file:
names, types, defaults and limits of every operator, and the members of every interface.
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

FACTS = Path(__file__).with_name("spec_facts.json")
OPERAND_RESULTS = ("MLOperand", "sequence<MLOperand>")
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


def idl_blocks(source: str) -> str:
    """All IDL of the source, without comments."""
    blocks = re.findall(r"<script type=\"?idl\"?>\n(.*?)</script>", source, re.DOTALL)
    return re.sub(r"//[^\n]*", "", "\n".join(blocks))


def split_arguments(text: str) -> list[str]:
    """Split at the commas that stand outside brackets."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += character in "<([{"
        depth -= character in ">)]}"
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [part.strip() for part in [*parts, current] if part.strip()]


def plain(type_text: str) -> str:
    """An IDL type without extended attributes other than EnforceRange, in one spacing."""
    return re.sub(r"\s+", " ", type_text.replace("[EnforceRange] ", "enforced ")).strip()


def read_dictionaries(idl: str) -> dict[str, dict]:
    """Members with type and default (None when absent) of every dictionary, and what it inherits."""
    found = {}
    for name, parent, body in re.findall(r"dictionary (\w+)(?:\s*:\s*(\w+))?\s*\{(.*?)\};", idl, re.DOTALL):
        members = {}
        for statement in filter(None, (part.strip() for part in body.split(";"))):
            match = re.fullmatch(r"(required )?(.+?)\s+(\w+)(?:\s*=\s*(.+))?", statement, re.DOTALL)
            required, kind, member, default = match.groups()
            members[member] = {
                "type": plain(kind),
                "required": bool(required),
                "default": None if default is None else json.loads(default),
            }
        found.setdefault(name, {"inherits": parent or None, "members": {}})["members"].update(members)
    return found


def read_operators(idl: str, dictionaries: dict[str, dict]) -> dict[str, dict]:
    """Parameters and options of every method of the builder that returns operands."""
    bodies = re.findall(r"partial interface MLGraphBuilder \{(.*?)\};", idl, re.DOTALL)
    bodies += re.findall(r"\binterface MLGraphBuilder \{(.*?)\};", idl, re.DOTALL)
    operators = {}
    for returns, name, arguments in re.findall(
        r"(MLOperand|sequence<MLOperand>)\s+(\w+)\(([^;]*)\);", "\n".join(dict.fromkeys(bodies))
    ):
        if name in {"input", "constant"}:
            continue
        parameters = {}
        for argument in split_arguments(arguments):
            match = re.fullmatch(r"(optional )?(.+?)\s+(\w+)(?:\s*=\s*\{\})?", argument, re.DOTALL)
            optional, kind, parameter = match.groups()
            if optional:
                options = dict(dictionaries[kind]["members"])
                parent = dictionaries[kind]["inherits"]
                options |= dictionaries[parent]["members"] if parent else {}
                parameters |= {key: {**value, "option": True} for key, value in options.items()}
            else:
                parameters[parameter] = {"type": plain(kind), "required": True, "default": None, "option": False}
        operators[name] = {"returns": returns, "parameters": parameters}
    return operators


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


def read_interfaces(idl: str) -> dict[str, list[str]]:
    """The names of attributes and methods of every interface."""
    interfaces: dict[str, list[str]] = {}
    for name, body in re.findall(r"interface (?:mixin )?(\w+)\s*\{(.*?)\};", idl, re.DOTALL):
        members = re.findall(r"attribute\s+[^;]*?(\w+)\s*;", body) + re.findall(r"(\w+)\([^;]*\)\s*;", body)
        interfaces[name] = list(dict.fromkeys([*interfaces.get(name, []), *members]))
    return interfaces


def main(path: str, revision: str) -> None:
    source = Path(path).read_text(encoding="utf-8")
    idl = idl_blocks(source)
    dictionaries = read_dictionaries(idl)
    enumerations = {
        name: re.findall(r'"([^"]+)"', body) for name, body in re.findall(r"enum (\w+)\s*\{(.*?)\}", idl, re.DOTALL)
    }
    facts = {
        "source": f"webmachinelearning/webnn {revision}",
        "interfaces": read_interfaces(idl),
        "enumerations": enumerations,
        "operators": read_operators(idl, dictionaries),
        "support_limits": {
            name: list(entry["members"]) for name, entry in dictionaries.items() if "SupportLimits" in name
        },
        "limits": read_limits(source),
    }
    FACTS.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
