"""Tests look at what a caller sees: few read private names of the package, or replace parts of it."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

SPEC_TESTS = Path(__file__).parents[1]
PACKAGE = SPEC_TESTS.parent / "webnn_py"
MOST_PRIVATE_READS = 129
MOST_REPLACEMENTS = 120

PRIVATE = r"_[A-Za-z]\w*(?<!_)\b"
OWN_NAME = re.compile(rf"(?:(?<![\w.])|(?<=self\.)|(?<=cls\.)){PRIVATE}")
"""A private name that is no attribute of something else; protocols' names, as ``_repr_html_``, are none."""
LOOKS_INSIDE = re.compile(rf"\.{PRIVATE}|\bimport .*{PRIVATE}|\(\n\s*{PRIVATE}|monkeypatch\.setattr")


@cache
def names_of_package():
    return {name for path in PACKAGE.rglob("*.py") for name in OWN_NAME.findall(path.read_text("utf-8"))}


def counted(source):
    """Count the reads of the package's private names, but those that the file defines too, and monkeypatch.setattr."""
    tree = ast.parse(source)
    own, others, attributes, found = {"self", "cls"}, set(), [], Counter()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                others.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                others.add(name)
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("webnn_py"):
                found["reads"] += sum(re.fullmatch(PRIVATE, item.name) is not None for item in names)
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                own |= {item.asname or item.name for item in names}
            case ast.Attribute(value=ast.Name(id="monkeypatch"), attr="setattr"):
                found["replacements"] += 1
            case ast.Attribute(attr=name, ctx=ast.Store()):
                others.add(name)
            case ast.Attribute(value=value, attr=name) if name.startswith("_"):
                attributes.append((value.id if isinstance(value, ast.Name) else "", name))
    foreign = [name for of, name in attributes if of not in own and name not in others]
    found["reads"] += sum(name in names_of_package() for name in foreign)
    return found


def test_few_tests_look_at_private_state():
    texts = {path.relative_to(SPEC_TESTS).as_posix(): path.read_text("utf-8") for path in SPEC_TESTS.rglob("*.py")}
    found = {name: counted(text) for name, text in texts.items() if LOOKS_INSIDE.search(text)}
    total = sum(found.values(), Counter())
    print(f"{total['reads']} reads of private names, {total['replacements']} replacements")
    for name, one in sorted(found.items(), key=lambda item: -item[1].total()):
        if one.total():
            print(f"{one['reads']:5} {one['replacements']:5}  {name}")
    assert total["reads"] <= MOST_PRIVATE_READS
    assert total["replacements"] <= MOST_REPLACEMENTS


def test_reads_and_replacements_are_counted():
    source = """
import other
from webnn_py.core.api import context, _lost_message
def test(monkeypatch, promise):
    monkeypatch.setattr(context, "name", promise._outcome)
    self._outcome, other._outcome, promise.outcome
"""
    assert counted(source) == {"reads": 2, "replacements": 1}
