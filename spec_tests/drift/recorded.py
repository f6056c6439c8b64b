"""The state of the specification and web-platform-tests when each part was last checked (``recorded.json``)."""

import hashlib
import json
import re
from pathlib import Path

from spec_tests.idl import specification
from spec_tests.specification import make_steps, steps
from spec_tests.specification.text import digest_of

FILE = Path(__file__).with_name("recorded.json")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINITION = re.compile(
    r"(?:\[[^\]]*\]\s*)?(?:partial\s+)?(?P<kind>interface mixin|interface|dictionary|enum)\s+(?P<name>\w+)[^{;]*"
    r"\{(?P<body>.*?)\}\s*;",
    re.DOTALL,
)
_TYPEDEF = re.compile(r"typedef\s+(.*?)\s+(\w+)\s*;", re.DOTALL)


def read():
    """Return the record."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def _write(**changed):
    text = json.dumps({**read(), **changed}, indent=0, ensure_ascii=False, sort_keys=True)
    FILE.write_text(text + "\n", encoding="utf-8")


def idl_blocks(source):
    """Return the IDL in a text.

    Raises:
        ValueError: there is none.
    """
    blocks = re.findall(r"<script type=\"?idl\"?>\n(.*?)</script>", source, re.DOTALL)
    if not blocks:
        raise ValueError("index.bs has no IDL blocks")
    return blocks


def idl_members(idl):
    """Return the digest of each member, by ``Definition.member``: of overloads all of them."""
    idl = _COMMENT.sub("", idl)
    found = {}
    for match in _DEFINITION.finditer(idl):
        separator = "," if match["kind"] == "enum" else ";"
        for part in match["body"].split(separator):
            text = " ".join(part.split())
            if text:
                name = f"{match['name']}.{_member_name(text)}"
                found[name] = f"{found[name]}; {text}" if name in found else text
    found.update({f"typedef {name}": " ".join(text.split()) for text, name in _TYPEDEF.findall(idl)})
    return {name: digest_of(text) for name, text in sorted(found.items())}


def _member_name(text):
    """Return the name of a member: of an operation the word before its parameters, else the last before a default."""
    if operation := re.search(r"(\w+)\s*\(", re.sub(r"^\[[^\]]*\]\s*", "", re.sub(r"^\((?:[^()]*)\)", "", text))):
        return operation[1]
    return text.partition("=")[0].split()[-1].strip('"')


def test_files(checkout):
    """Return the digest of each file of the tests, by its name below ``webnn``.

    Raises:
        OSError: there is no such folder.
    """
    folder = checkout / "webnn"
    if not folder.is_dir():
        raise FileNotFoundError(f"{checkout} has no folder webnn")
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in {".js", ".html", ".json"})
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in found}


def sub_tests(report):
    """Return the digest of the names and statuses of each file's sub-tests, and their number, from a report.

    Raises:
        ValueError: it is no report.
    """
    try:
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
        return {
            file["id"]: [
                len(file["subtests"]),
                digest_of(json.dumps(sorted((t["name"], t["status"]) for t in file["subtests"]))),
            ]
            for file in files
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{report} is no report of webnn-py wpt: {error!r}") from error


def record_specification(path, commit):
    """Take a text as checked: its steps keep their identifiers. The IDL and limits have a script of their own."""
    make_steps.write(path, commit)
    _write(
        idl=idl_members("\n".join(idl_blocks(path.read_text(encoding="utf-8")))),
        text=f"webmachinelearning/webnn {commit}",
    )


def record_wpt(checkout, report, commit):
    """Take tests as checked."""
    _write(files=test_files(checkout), sub_tests=sub_tests(report), tests=f"web-platform-tests {commit}")


def sources():
    """Return the revisions that the parts were checked against."""
    parts = [read().get("text", steps.SOURCE), *sorted(specification.REVISIONS), read().get("tests", "no tests")]
    return [*dict.fromkeys(parts)]
