"""Reports of a run as files: ``.json``, ``.xml`` (JUnit)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs

from webnn_py.javascript.results import HARNESS
from webnn_py.javascript.summary import Run
from webnn_py.written_files import written_whole


def as_json(run: Run) -> str:
    """Return every sub-test's status and message, as JSON."""
    files = [
        {
            "id": result.id,
            "harness": result.harness,
            "message": result.message,
            "seconds": round(result.seconds, 3),
            "log": result.log,
            "subtests": [
                attrs.asdict(one, filter=lambda attribute, _: attribute.name != "file")
                for one in run.judged[result.id]
                if one.name != HARNESS
            ],
        }
        for result in run.files
    ]
    return json.dumps({"facts": run.facts, "totals": run.totals(), "files": files}, indent=1, ensure_ascii=False) + "\n"


def as_junit(run: Run) -> str:
    """Return a report for JUnit readers: expected failures are skipped with their reason, unexpected passes fail."""
    totals = run.totals()
    root = ET.Element("testsuites", name="web-platform-tests", time=f"{run.seconds:.3f}")
    properties = ET.SubElement(root, "properties")
    for name, value in run.facts.items():
        ET.SubElement(properties, "property", name=name, value=value)
    for result in run.files:
        judged = run.judged[result.id]
        bad = sum(one.verdict.startswith("unexpected") for one in judged)
        skipped = sum(one.verdict == "expected failure" for one in judged)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=result.id,
            tests=str(len(judged)),
            failures=str(bad),
            skipped=str(skipped),
            time=f"{result.seconds:.3f}",
        )
        for one in judged:
            case = ET.SubElement(suite, "testcase", name=_printable(one.name), classname=result.id)
            message = _printable(one.message or one.status)
            if one.verdict == "expected failure":
                ET.SubElement(case, "skipped", message=_printable(one.reason or ""))
            elif one.verdict != "pass":
                kind = ET.SubElement(case, "failure", type=one.verdict, message=message)
                kind.text = _printable(one.reason or message)
    root.set("tests", str(totals["subtests"]))
    root.set("failures", str(totals["unexpected_failures"] + totals["unexpected_passes"]))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Text that XML can hold: control characters and lone surrogates as their codes."""
    return "".join(
        character
        if character in "\t\n"
        or (character >= " " and not "\ud800" <= character <= "\udfff" and character < "\ufffe")
        or character > "\uffff"
        else f"\\u{ord(character):04x}"
        for character in text
    )


FORMATS: Mapping[str, Callable[[Run], str]] = {".json": as_json, ".xml": as_junit}


def check(path: Path) -> None:
    """Refuse, before the run, what could not be written after it.

    Raises:
        ValueError: the format is unknown.
        FileNotFoundError: the folder is missing.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: reports end in {', '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path.absolute().parent} is no folder")


def write(run: Run, path: Path) -> None:
    """Write a report in the format that its name ends in."""
    # Names of sub-tests may hold lone surrogates, which are not text: they are written as escapes, JSON's own.
    text = FORMATS[path.suffix](run)
    with written_whole(path) as (fresh,):
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
